/* download.h - files that other processes read ("a __page") and browsers keep. They go to the visit piece by piece as
 * it takes them, whatever their size; a few at a time, and none is kept. */
#ifndef ACT_CLI_PAGE_DOWNLOAD_H
#define ACT_CLI_PAGE_DOWNLOAD_H

struct act_strv;
struct downloads;
struct engine;
struct web_visit;

struct downloads *downloads_new(struct engine *engine);
/* Ends those that are under way. The visits have been ended. NULL is fine. */
void downloads_free(struct downloads *downloads);

/* Answers a visit with the file that "a __page" prints for the words, behind a line with its size; name: of the copy.
 */
void downloads_answer(struct downloads *downloads, const struct act_strv *words, const char *name,
                      struct web_visit *visit);

#endif
