/* The modules that a script imports, and the packages that its environment lacks: what hostile files cost. */
#define TEST_SETUP    make_dir
#define TEST_TEARDOWN remove_dir
#include "config/config.h"
#include "unit/temp_dir.h"

#include <stdio.h>
#include <sys/stat.h>

#include "flow/code/code_internal.h"

static int64_t now_ms, step_ms; /* what the clock says next, and how far it goes each time that somebody looks */
static char warned[1024];

int64_t __wrap_act_now_monotonic_ms(void);
int64_t __wrap_act_now_monotonic_ms(void)
{
    return now_ms += step_ms;
}

void __wrap_act_warn(const char *fmt, ...) ACT_PRINTF(1, 2);
void __wrap_act_warn(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(warned, sizeof(warned), fmt, ap);
    va_end(ap);
}

static void lacking_test_repeat(struct act_buf *out, const char *text, int n)
{
    for (int i = 0; i < n; i++)
        act_buf_add(out, text, strlen(text));
}

TEST(names_that_no_file_has_are_passed_over)
{
    static const char *const beginnings[] = {"import a", "from .a", "from a"};
    ACT_AUTO(act_buf) text = {0};
    ACT_AUTO(act_strv) modules = {0};

    now_ms = step_ms = 0;
    for (size_t i = 0; i < COUNT(beginnings); i++) {
        act_buf_addf(&text, "%s", beginnings[i]);
        lacking_test_repeat(&text, ".a", 30000);
        act_buf_addf(&text, "%s\n", i > 0 ? " import b, c" : ", beside");
    }
    act_buf_addf(&text, "import torch\n");
    test_write("x.py", text.data);
    flow_imports_of(dir, "x.py", 1, &modules);
    assert_int_equal(modules.n, 2);
    assert_string_equal(modules.v[0], "beside");
    assert_string_equal(modules.v[1], "torch");
}

TEST(the_clock_ends_a_list_and_a_file)
{
    enum { MANY = 1000, TIME = 100 };
    static const char *const between[] = {"\nimport ", ", "};

    for (size_t f = 0; f < COUNT(between); f++) {
        ACT_AUTO(act_buf) text = {0};
        ACT_AUTO(act_strv) modules = {0};
        act_buf_addf(&text, "import first");
        for (int i = 0; i < MANY; i++)
            act_buf_addf(&text, "%sm%d", between[f], i);
        test_write("x.py", text.data);
        now_ms = 0;
        step_ms = 1;
        flow_imports_of(dir, "x.py", TIME, &modules);
        assert_in_range(modules.n, 1, TIME);
        assert_true(now_ms < 2 * TIME);
    }
}

/* Says what is lacking to the command "python3 x.py", with the time that there is. */
static void lacking_test_warn(int64_t step)
{
    struct act_strv argv = {0};
    struct config config = {.project_root = dir};
    struct run_spec spec = {0};

    act_strv_push(&argv, "python3");
    act_strv_push(&argv, "x.py");
    spec.argv = argv;
    *warned = '\0';
    now_ms = 0;
    step_ms = step;
    flow_warn_lacking(&config, &spec);
    act_strv_release(&argv);
}

#define SITE "venv/lib/python3.11/site-packages/"

TEST(metadata_that_is_no_file_is_passed_over)
{
    ACT_AUTOFREE char *venv = test_path("venv");
    ACT_AUTOFREE char *fifo = test_path(SITE "torch-2.1.dist-info/METADATA");

    test_write(SITE "torch-2.1.dist-info/top_level.txt", "torch\n");
    test_write(SITE "toy-1.0.dist-info/METADATA", "Name: toy\n");
    test_write(SITE "toy/__init__.py", "");
    test_write("requirements.txt", "torch\n");
    test_write("x.py", "import toy\n");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    setenv("VIRTUAL_ENV", venv, 1);
    lacking_test_warn(0);
    assert_string_equal(warned,
                        "x.py imports what the Python here has and requirements.txt does not name: toy (toy 1.0)");
}

/* Each of them names the next a thousand times. */
TEST(requirements_that_name_others_without_end)
{
    ACT_AUTOFREE char *venv = test_path("venv");

    test_write(SITE "toy-1.0.dist-info/METADATA", "Name: toy\n");
    test_write(SITE "toy/__init__.py", "");
    test_write("x.py", "import toy\n");
    for (int i = 0; i < 4; i++) {
        ACT_AUTO(act_buf) text = {0};
        ACT_AUTOFREE char *name = i ? act_sprintf("r%d.txt", i) : act_strdup("requirements.txt");
        ACT_AUTOFREE char *line = act_sprintf("-r r%d.txt\n", i + 1);
        lacking_test_repeat(&text, line, 1000);
        test_write(name, text.data);
    }
    test_write("r4.txt", "other\n");
    setenv("VIRTUAL_ENV", venv, 1);
    lacking_test_warn(1);
    assert_string_equal(warned, "");
    assert_true(now_ms < 1000);
}

TEST_MAIN(NULL, NULL)
