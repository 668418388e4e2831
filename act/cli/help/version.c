/* version.c - the program's version, and for bug reports the commit and the libraries. */
#include <curl/curl.h>
#include <expat.h>
#include <jansson.h>
#include <libdeflate.h>
#include <sqlite3.h>
#include <stdio.h>
#include <sys/utsname.h>
#include <unistring/version.h>
#include <yaml.h>

#include "cli/help/help.h"
#include "commit.h"
#include "flow/cluster/doctor.h"

void cli_print_version(FILE *out)
{
    struct utsname machine = {0};
    const XML_Expat_Version xml = XML_ExpatVersionInfo();
    int unistring = _libunistring_version;
    ACT_AUTOFREE char *newer = flow_newer_version();

    uname(&machine);
    fprintf(out, "act " ACT_VERSION "\ncommit " ACT_COMMIT ", %s\n", machine.machine);
    fprintf(out,
            "%s SQLite/%s jansson/%s libyaml/%s expat/%d.%d.%d libdeflate/" LIBDEFLATE_VERSION_STRING
            " libunistring/%d.%d\n",
            curl_version(), sqlite3_libversion(), jansson_version_str(), yaml_get_version_string(), xml.major,
            xml.minor, xml.micro, unistring >> 16, unistring >> 8 & 0xff);
    if (newer)
        fprintf(out, "a newer one is there: %s\n", newer);
}
