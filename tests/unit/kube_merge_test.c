/* Adding the entries of one kubeconfig to another, as text. */
#include "unit/test.h"

#include "kube/kube.h"

#define ADDED                                                                                                          \
    "apiVersion: v1\nclusters:\n- cluster:\n    server: https://aks:443\n  name: aks\ncontexts:\n- context:\n"         \
    "    cluster: aks\n    user: u\n  name: aks\ncurrent-context: aks\nkind: Config\nusers:\n- name: u\n  user:\n"     \
    "    exec: {command: kubelogin, args: [get-token, '--x'], env: null, env2: []}\n"

static struct kube_addition kube_merge_test_add(const char *text)
{
    struct kube_addition out;

    assert_ok(kube_config_add(text, "config", ADDED, &out, &err), err);
    assert_string_equal(out.context, "aks");
    return out;
}

TEST(a_file_that_is_not_there_begins_as_one)
{
    struct kube_addition out = kube_merge_test_add(NULL), again = kube_merge_test_add(out.text);

    assert_string_equal(out.text, "apiVersion: v1\nkind: Config\nclusters:\n- cluster:\n    server: https://aks:443\n"
                                  "  name: aks\ncontexts:\n- context:\n    cluster: aks\n    user: u\n  name: aks\n"
                                  "users:\n- name: u\n  user:\n    exec:\n      command: kubelogin\n      args:\n"
                                  "      - get-token\n      - \"--x\"\n      env: null\n      env2: []\n"
                                  "current-context: \"aks\"\n");
    assert_true(out.is_new);
    assert_false(again.is_new);
    assert_string_equal(again.text, out.text);
    kube_addition_release(&out);
    kube_addition_release(&again);
}

TEST(entries_go_behind_those_of_their_list)
{
    struct kube_addition out =
        kube_merge_test_add("clusters:\n  - name: a # mine\n    cluster: {server: 'https://a'}\n\n# people\n"
                            "users: []\ncontexts: # none\ncurrent-context: ''");

    assert_string_equal(out.text, "clusters:\n  - name: a # mine\n    cluster: {server: 'https://a'}\n"
                                  "  - cluster:\n      server: https://aks:443\n    name: aks\n\n# people\n"
                                  "users:\n- name: u\n  user:\n    exec:\n      command: kubelogin\n      args:\n"
                                  "      - get-token\n      - \"--x\"\n      env: null\n      env2: []\n"
                                  "contexts:\n- context:\n    cluster: aks\n    user: u\n  name: aks\n"
                                  "current-context: \"aks\"\n");
    assert_int_equal(out.replaced.n, 0);
    kube_addition_release(&out);
}

TEST(an_entry_of_the_same_name_is_replaced)
{
    struct kube_addition out =
        kube_merge_test_add("clusters:\n- name: aks\n  cluster:\n    server: |\n      old\n# next\n"
                            "- name: b\n  cluster:\n    server: https://b\ncurrent-context: b\n");

    assert_non_null(strstr(out.text, "clusters:\n- cluster:\n    server: https://aks:443\n  name: aks\n# next\n"
                                     "- name: b\n  cluster:\n    server: https://b\ncurrent-context: b\n"));
    assert_int_equal(out.replaced.n, 1);
    assert_string_equal(out.replaced.v[0], "cluster 'aks'");
    kube_addition_release(&out);
}

TEST(what_cannot_be_edited_is_refused)
{
    static const char *const texts[] = {
        "{clusters: [{name: a, cluster: {}}]}",
        "clusters:\n-\n  name: a\n  cluster: {}\n",
        "{}\n---\n{}\n",
        "{clusters: [], n: 1}",
        "clusters: [{name: a}]\n",
        "users: text\n",
        "? clusters\n: - {name: a, cluster: {}}\n",
    };
    struct kube_addition out;

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        assert_fails(kube_config_add(texts[i], "config", ADDED, &out, &err), err, ACT_CONFIG, "config");
        assert_null(out.text);
    }
    assert_fails(kube_config_add(NULL, "config", "kind: Config\n", &out, &err), err, ACT_FAIL, "names no context");
    assert_fails(kube_config_add(NULL, "config", "clusters: [{}]\ncurrent-context: x\n", &out, &err), err, ACT_CONFIG,
                 "has no name");
}

TEST_MAIN(NULL, NULL)
