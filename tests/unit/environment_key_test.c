/* environment_key_test.c - which runs share an environment: all that say the same, those of the same code, or none. */
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "node/environment.h"

enum share { ALL, CODE, NONE };

static char *wheels;

static void key_of(const char *package, const char *id, char out[ENVIRONMENT_KEY])
{
    struct node node = {.code = dir, .spec.environment.wheels = wheels};
    struct environment_source source;

    node.spec.id = (char *)(uintptr_t)id;
    snprintf(node.spec.package_sha256, sizeof(node.spec.package_sha256), "%s", package);
    assert_true(environment_source(&node, &source));
    environment_key(&node, &source, out);
}

static enum share share_of(void)
{
    char first[ENVIRONMENT_KEY], other_run[ENVIRONMENT_KEY], other_code[ENVIRONMENT_KEY];

    key_of("aa", "r_1", first);
    key_of("aa", "r_2", other_run);
    key_of("bb", "r_1", other_code);
    return strcmp(first, other_run) != 0 ? NONE : strcmp(first, other_code) != 0 ? CODE : ALL;
}

static const struct {
    const char *text;
    enum share share;
} requirements[] = {
    {"torch\n# a comment\nnumpy==1.26 # with one\n", ALL},
    {"transformers[torch] >= 4.40, < 5 ; python_version > '3'\n", ALL},
    {"a==1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n", ALL},
    {"x @ https://host/x-1.0.whl\nhttps://host/y.tar.gz\ngit+https://host/z.git@v1\n", ALL},
    {"--index-url https://host/simple\n--pre\n-f https://host/wheels\ntorch\n", ALL},
    {"--no-index\n--find-links wheels\ntinya\n", CODE},
    {"--no-index --find-links wheels\ntinya\n", CODE},
    {"-f wheels\ntinya\n", CODE},
    {"tinya-1.0-py3-none-any.whl ; python_version > \"3\"\n", CODE},
    {"x.tar.gz\n", CODE},
    {"x.zip\n", CODE},
    {"./local\n", CODE},
    {"lib/local\n", CODE},
    {"x @ file:///code/x\n", CODE},
    {"-r \"my dir/more.txt\"\n", CODE},
    {"-r ${NAME}.txt\n", CODE},
    {"${NAME}\n", CODE},
    {"-r nosuch.txt\n", CODE},
    {"-r\tmore.txt\n", ALL},
    {"-r more.txt\n-c more.txt\n", ALL},
    {"--requirement=local.txt\n", CODE},
    {"a --config-settings=x=y\n", CODE},
    {"--no-such-option\n", CODE},
    {"lo\\\ncal.whl\n", CODE},
    {"-e .\n", NONE},
    {"--editable=lib/mine\n", NONE},
    {"--no-index -e lib\n", NONE},
    {"-r editable.txt\n", NONE},
};

TEST(test_requirements)
{
    test_write("more.txt", "numpy\n");
    test_write("local.txt", "./wheel\n");
    test_write("editable.txt", "-e mine\n");
    for (size_t i = 0; i < COUNT(requirements); i++) {
        test_write("requirements.txt", requirements[i].text);
        if (share_of() != requirements[i].share)
            fail_msg("%s: %d, not %d", requirements[i].text, share_of(), requirements[i].share);
    }
    ACT_AUTOFREE char *path = test_path("requirements.txt");
    unlink(path);
}

/* What is included counts as what includes it. */
TEST(test_a_file_that_is_included_changes)
{
    char before[ENVIRONMENT_KEY], after[ENVIRONMENT_KEY];

    test_write("requirements.txt", "-r more.txt\n");
    test_write("more.txt", "tinya==1.0\n");
    key_of("aa", "r_1", before);
    test_write("more.txt", "tinya==2.0\n");
    key_of("aa", "r_1", after);
    assert_string_not_equal(before, after);
    ACT_AUTOFREE char *path = test_path("requirements.txt");
    unlink(path);
}

/* Another wheel of the same name and size is another environment. */
TEST(test_the_folder_of_wheels_changes)
{
    static const char *const contents[] = {"one", "two", NULL};
    char keys[COUNT(contents)][ENVIRONMENT_KEY];
    ACT_AUTOFREE char *path = test_path("wheels/tinya-1.0-py3-none-any.whl");

    wheels = (char[]){"wheels"};
    test_write("requirements.txt", "tinya\n");
    for (size_t i = 0; i < COUNT(contents); i++) {
        if (contents[i])
            test_write("wheels/tinya-1.0-py3-none-any.whl", contents[i]);
        else
            unlink(path);
        key_of("aa", "r_1", keys[i]);
        for (size_t before = 0; before < i; before++)
            assert_string_not_equal(keys[before], keys[i]);
    }
    wheels = NULL;
    ACT_AUTOFREE char *requirements_path = test_path("requirements.txt");
    unlink(requirements_path);
}

static const struct {
    const char *file, *text;
    enum share share;
} locks[] = {
    {"environment.yml", "dependencies:\n  - python=3.11\n  - pip:\n    - torch\n", ALL},
    {"environment.yml", "dependencies:\n  - pip:\n    - -r pip.txt\n", CODE},
    {"environment.yml", "dependencies:\n  - pip:\n    - mine-1.0.whl\n", CODE},
    {"environment.yml", "dependencies:\n  - pip:\n    - ./mine\n", CODE},
    {"environment.yml", "dependencies:\n  - pip:\n    - -e .\n", NONE},
    {"pylock.toml", "[[packages]]\nname = \"a\"\nwheels = [{url = \"https://host/a.whl\"}]\n", ALL},
    {"pylock.toml", "[[packages]]\nname = \"a\"\n[packages.directory]\npath = \"lib/a\"\n", CODE},
    {"uv.lock", "source = { editable = \".\" }\nwheels = [ { url = \"https://host/a.whl\" } ]\n", ALL},
    {"uv.lock", "source = { directory = \"lib/a\" }\n", CODE},
    {"uv.lock", "source = { editable = \"lib/a\" }\n", NONE},
    {"poetry.lock", "files = [ {file = \"a.whl\", hash = \"sha256:0\"} ]\n", ALL},
    {"poetry.lock", "[package.source]\ntype = \"directory\"\nurl = \"lib\"\n", CODE},
    {"poetry.lock", "develop = true\n", NONE},
};

TEST(test_lock_files)
{
    test_write("pyproject.toml", "[tool.x]\npath = \"anything\"\n");
    for (size_t i = 0; i < COUNT(locks); i++) {
        ACT_AUTOFREE char *path = test_path(locks[i].file);
        test_write(locks[i].file, locks[i].text);
        if (share_of() != locks[i].share)
            fail_msg("%s: %s: %d, not %d", locks[i].file, locks[i].text, share_of(), locks[i].share);
        unlink(path);
    }
}

/* pyenv's script is not run to find out what it would start, unless that is not simple. */
TEST(test_pyenv)
{
    static const struct {
        const char *variable, *project, *global;
        bool is_asked;
    } cases[] = {
        {NULL, NULL, "3.11.4\n", false},
        {NULL, "3.12.1\n", "3.11.4\n", false},
        {"3.12.1", "3.11.4\n", NULL, false},
        {NULL, "3.12.1 3.11.4\n", NULL, false},
        {"3.12", NULL, "3.11.4\n", true},
        {NULL, "system\n", "3.11.4\n", true},
        {NULL, NULL, NULL, true},
        {NULL, "../3.11.4\n", NULL, true},
        {"3.12.1:3.11.4", NULL, NULL, false},
    };
    static const char *const folders[] = {
        "shims", "versions", "versions/3.11.4", "versions/3.12.1", "versions/3.11.4/bin", "versions/3.12.1/bin"};
    ACT_AUTOFREE char *shims = test_path("shims"), *shim = test_path("shims/python3"), *asked = test_path("asked");
    ACT_AUTOFREE char *local = test_path(".python-version"), *global = test_path("version");
    ACT_AUTOFREE char *text = act_sprintf("#!/bin/sh\nexport PYENV_ROOT=\"%s\"\n/usr/bin/touch %s\n", dir, asked);
    ACT_AUTOFREE char *path = act_sprintf("%s:%s", shims, getenv("PATH"));
    char keys[COUNT(cases)][ENVIRONMENT_KEY];

    for (size_t i = 0; i < COUNT(folders); i++) {
        ACT_AUTOFREE char *folder = test_path(folders[i]);
        assert_int_equal(mkdir(folder, 0755), 0);
    }
    test_write("shims/python3", text);
    test_write("versions/3.11.4/bin/python3", "older");
    test_write("versions/3.12.1/bin/python3", "a newer one");
    ACT_AUTOFREE char *old = test_path("versions/3.11.4/bin/python3"), *new = test_path("versions/3.12.1/bin/python3");
    assert_int_equal(chmod(shim, 0755) | chmod(old, 0755) | chmod(new, 0755), 0);
    setenv("PATH", path, 1);
    test_write("requirements.txt", "numpy\n");
    for (size_t i = 0; i < COUNT(cases); i++) {
        unlink(local);
        unlink(global);
        unlink(asked);
        (cases[i].variable ? setenv("PYENV_VERSION", cases[i].variable, 1) : unsetenv("PYENV_VERSION"));
        if (cases[i].project)
            test_write(".python-version", cases[i].project);
        if (cases[i].global)
            test_write("version", cases[i].global);
        key_of("aa", "r_1", keys[i]);
        if ((access(asked, F_OK) == 0) != cases[i].is_asked)
            fail_msg("case %zu", i);
    }
    assert_string_equal(keys[1], keys[2]);
    assert_string_equal(keys[1], keys[3]);
    assert_string_equal(keys[1], keys[8]);
    assert_string_not_equal(keys[0], keys[1]);
    unsetenv("PYENV_VERSION");
}

static int begin(void **state)
{
    setenv("PATH", "/usr/bin:/bin", 1); /* a Python that is no script need not be asked which one it is */
    return make_dir(state);
}

TEST_MAIN(begin, remove_dir)
