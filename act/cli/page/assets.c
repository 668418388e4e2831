/* assets.c - the script and the sheet of the pages, as cmake/ActPages.cmake has put them together. */
#include "base/text.h"
#include "cli/page/page.h"

__asm__(".pushsection .rodata\n"
        ".global page_asset_script\n"
        "page_asset_script:\n"
        ".incbin \"" PAGE_SCRIPT "\"\n"
        ".byte 0\n"
        ".global page_asset_sheet\n"
        "page_asset_sheet:\n"
        ".incbin \"" PAGE_SHEET "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char page_asset_script[], page_asset_sheet[];

const char *page_script(void)
{
    return page_asset_script;
}

char *page_sheet(void)
{
    return act_sprintf("%s%s", draw_style(), page_asset_sheet);
}
