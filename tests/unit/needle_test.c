/* needle_test.c - the texts of which every match of a regular expression has one in it. */
#include "unit/test.h"

#include <regex.h>
#include <string.h>

#include "flow/logs/needle.h"

TEST(of_each_expression)
{
    static const struct {
        const char *pattern, *needles, *match; /* with commas; a text that matches */
    } rows[] = {
        {"", "", "any"},
        {"RuntimeError", "RuntimeError", "a RuntimeError: x"},
        {"^step 7$", "step 7", "step 7"},
        {"loss=[0-9.]+ nan", "loss=", "loss=0.5 nan"},
        {"x.*out of memory", "out of memory", "x is out of memory"},
        {"out of memor(y|ies)", "out of memor", "out of memories"},
        {"abc|abd", "abc,abd", "abd"},
        {"out .*of memory|error: [0-9]", "of memory,error: ", "error: 7"},
        {"abc|.|abd", "", "x"},
        {"abc|", "", "x"},
        {"a|b|c|d|e|f|g|h", "a,b,c,d,e,f,g,h", "h"},
        {"a|b|c|d|e|f|g|h|i", "", "i"},
        {"(abc|abd)ef", "ef", "abdef"},
        {"(a|b(c|d))?", "", "nothing"},
        {"colou?r", "colo", "color"},
        {"ab*", "a", "a"},
        {"ab+?c", "a", "ac"},
        {"ab{0,1}", "a", "a"},
        {"a{2}bc", "bc", "aabc"},
        {"a\\.b", "a.b", "a.b"},
        {"\\(x\\)\\*", "(x)*", "(x)*"},
        {"\\<rank\\> 3", "rank", "rank 3"},
        {"\\w\\+word", "+word", "a+word"},
        {"[]abc]defg", "defg", "]defg"},
        {"[^]abc]defg", "defg", "xdefg"},
        {"[[:alpha:]]]x", "x", "b]x"},
        {"[[.-.]]long[[=a=]]", "long", "-longa"},
        {"ab\xc3\xa9?", "ab", "ab\xc3\xa9"},
        {"ab\xc3\xa9", "ab\xc3\xa9", "ab\xc3\xa9"},
        {"short and longer.than that", "short and longer", "short and longer than that"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        ACT_AUTO(act_strv) needles = {0};
        regex_t regex;
        flow_needles(rows[i].pattern, &needles);
        assert_int_equal(regcomp(&regex, rows[i].pattern, REG_EXTENDED | REG_NOSUB), 0);
        assert_int_equal(regexec(&regex, rows[i].match, 0, NULL, 0), 0);
        ACT_AUTO(act_buf) joined = {0};
        bool has_one = needles.n == 0;
        for (size_t k = 0; k < needles.n; k++) {
            act_buf_addf(&joined, "%s%s", k > 0 ? "," : "", needles.v[k]);
            has_one = has_one || strstr(rows[i].match, needles.v[k]);
        }
        assert_string_equal(joined.data ? joined.data : "", rows[i].needles);
        assert_true(has_one);
        regfree(&regex);
    }
}

/* Returns where the first of them begins, by the plainest way. */
static const char *needle_first_of(const struct act_strv *needles, const char *text, const char *end)
{
    const char *first = end;

    for (size_t i = 0; i < needles->n; i++) {
        const char *at = memmem(text, (size_t)(end - text), needles->v[i], strlen(needles->v[i]));
        first = at && at < first ? at : first;
    }
    return first;
}

/* Wherever they begin and end in the blocks that are compared, with parts of them all around. */
TEST(finding_them)
{
    static const char *const patterns[] = {"a",     "ab", "aab|ba", "b|aaaa", "abbbbbbbbbbbbbbbbbbbbbbbbbbbbbb|bab",
                                           "zz|aba"};
    enum { LEN = 100, ROUNDS = 300 };
    unsigned seed = 1;
    char text[LEN];

    for (size_t i = 0; i < COUNT(patterns); i++) {
        ACT_AUTO(act_strv) needles = {0};
        struct needle_search search;
        flow_needles(patterns[i], &needles);
        flow_needles_prepare(&needles, &search);
        for (int round = 0; round < ROUNDS; round++) {
            for (size_t k = 0; k < LEN; k++) {
                seed = seed * 1103515245U + 12345U;
                text[k] = (seed >> 16) % 11 < (unsigned)round % 12 ? 'a' : 'b';
            }
            for (size_t from = 0; from <= LEN; from += 7) {
                const char *end = text + LEN - (unsigned)round % 40;
                if (text + from <= end)
                    assert_ptr_equal(flow_needles_find(&search, text + from, end),
                                     needle_first_of(&needles, text + from, end));
            }
        }
    }
}

TEST_MAIN(NULL, NULL)
