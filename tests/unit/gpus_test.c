/* gpus_test.c - GPUs from made-up and recorded facts: which there are, which are given, who uses them. */
#define TEST_SETUP    make_dir
#define TEST_TEARDOWN remove_dir
#include "unit/temp_dir.h"
#include "unit/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "gpus/gpus.h"

#define UUID(digit) "GPU-" digit digit digit digit digit digit digit digit "-1234-5678-9abc-def012345678"

/* ---- a made-up machine */

static void gpus_put(const char *path, const char *text)
{
    ACT_AUTOFREE char *full = act_path_join(dir, path);
    ACT_AUTOFREE char *above = act_path_dirname(full);

    assert_ok(act_mkdir_all(above, 0755, &err), err);
    assert_ok(act_file_write(full, text, strlen(text), 0644, &err), err);
}

static void gpus_device(const char *name, bool may_open)
{
    ACT_AUTOFREE char *path = act_sprintf("dev/%s", name);

    if (may_open) /* else as if the cgroup denied it: tests run as root, whom no mode stops */
        gpus_put(path, "");
}

/* A card at a bus address, whose minor number need not be in the order of these. */
static void gpus_card(int i, int minor, bool may_open)
{
    ACT_AUTOFREE char *path = act_sprintf("proc/driver/nvidia/gpus/0000:%02x:00.0/information", 0x10 * (i + 1));
    ACT_AUTOFREE char *text =
        act_sprintf("Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 17\nGPU UUID: \t GPU-%d%d%d%d%d%d%d%d-"
                    "1234-5678-9abc-def012345678\nVideo BIOS: \t 96.00\nBus Type: \t PCIe\n"
                    "Bus Location: \t 0000:%02x:00.0\nDevice Minor: \t %d\n",
                    i, i, i, i, i, i, i, i, 0x10 * (i + 1), minor);
    ACT_AUTOFREE char *device = act_sprintf("nvidia%d", minor);

    gpus_put(path, text);
    gpus_device(device, may_open);
}

static void gpus_cards(int n)
{
    gpus_device("nvidiactl", true);
    for (int i = 0; i < n; i++)
        gpus_card(i, i, true);
}

/* What is given, as a process is told; "" nothing. New string. */
static char *gpus_given_text(const struct gpu_list *list)
{
    ACT_AUTOFREE bool *mine = act_calloc(list->n + 1, sizeof(bool));

    for (size_t i = 0; i < list->n; i++)
        mine[i] = list->v[i].is_given;
    return gpus_text(list, mine);
}

static void assert_given(const struct gpu_masks *masks, const char *wanted)
{
    struct gpu_list list;

    gpus_find(dir, &list);
    gpus_apply_masks(masks, &list);
    ACT_AUTOFREE char *text = gpus_given_text(&list);
    assert_string_equal(text, wanted);
    gpu_list_release(&list);
}

/* ---- which there are */

TEST(test_a_machine_without_gpus)
{
    assert_given(&(struct gpu_masks){0}, "");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"0"}}}, "");
}

/* Of lists that name the same GPUs in their own ways, the same ones stay. */
TEST(test_positions_of_what_is_visible)
{
    static const struct {
        const char *cuda, *rocr, *positions, *cuda_left, *rocr_left, *hip;
    } rows[] = {
        {"0,1,2,3", NULL, "2,3", "2,3", NULL, NULL},
        {"4,6,7", NULL, "0,2", "4,7", NULL, NULL},
        {"MIG-a,GPU-b", NULL, "1", "GPU-b", NULL, NULL},
        {"0,1", NULL, "", "", NULL, NULL},
        {"0", NULL, "1", "", NULL, NULL}, /* it has none of them: no others */
        {NULL, NULL, "1", "1", NULL, NULL},
        {NULL, "4,5,6", "1,2", NULL, "5,6", "0,1"},
        {"4,5,6", "4,5,6", "2", "6", "6", "0"},
        {NULL, "4", "", NULL, "", ""},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct gpu_masks masks = {
            .v = {[MASK_CUDA] = act_strdup(rows[i].cuda), [MASK_ROCR] = act_strdup(rows[i].rocr)}};
        gpu_masks_restore(&masks);
        gpus_narrow(rows[i].positions);
        gpu_masks_release(&masks);
        assert_true(act_streq(getenv("CUDA_VISIBLE_DEVICES"), rows[i].cuda_left));
        assert_true(act_streq(getenv("ROCR_VISIBLE_DEVICES"), rows[i].rocr_left));
        assert_true(act_streq(getenv("HIP_VISIBLE_DEVICES"), rows[i].hip));
    }
    gpu_masks_restore(&(struct gpu_masks){0});
}

TEST(test_cards_in_the_order_of_their_bus)
{
    struct gpu_list list;

    gpus_card(0, 3, true);
    gpus_card(1, 0, true);
    gpus_find(dir, &list);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.v[0].index, 0);
    assert_int_equal(list.v[0].card, 3);
    assert_string_equal(list.v[0].uuid, UUID("0"));
    assert_string_equal(list.v[0].bus, "0000:10:00.0");
    assert_string_equal(list.v[0].model, "NVIDIA H100 80GB HBM3");
    assert_int_equal(list.v[1].index, 1);
    assert_int_equal(list.v[1].card, 0);
    gpu_list_release(&list);
}

TEST(test_what_a_cgroup_denies_has_no_number)
{
    struct gpu_list list;
    struct gpu_masks none = {0};

    for (int i = 0; i < 8; i++)
        gpus_card(i, i, i == 2 || i == 5);
    gpus_find(dir, &list);
    assert_int_equal(gpus_given(&list), 2);
    assert_int_equal(list.v[2].index, 0);
    assert_int_equal(list.v[5].index, 1);
    ACT_AUTOFREE char *why = gpus_why_not_all(&none, &list);
    assert_string_equal(why, "this process may open 2 of 8");
    ACT_AUTOFREE char *key = gpus_key(&list.v[5]);
    assert_string_equal(key, "5"); /* which is the same for everybody */
    gpu_list_release(&list);
}

TEST(test_device_files_alone)
{
    gpus_device("nvidia10", true);
    gpus_device("nvidia2", true);
    gpus_device("nvidiactl", true);
    gpus_device("nvidia-uvm", true);
    assert_given(&(struct gpu_masks){0}, "0,1");
}

TEST(test_cards_that_nobody_has_used_yet)
{
    gpus_card(0, 0, false);
    gpus_card(1, 1, false);
    assert_given(&(struct gpu_masks){0}, "0,1");
}

static void gpus_instance(int card, int gi, int ci, int minor)
{
    ACT_AUTOFREE char *gi_path = act_sprintf("proc/driver/nvidia/capabilities/gpu%d/mig/gi%d/access", card, gi);
    ACT_AUTOFREE char *ci_path =
        act_sprintf("proc/driver/nvidia/capabilities/gpu%d/mig/gi%d/ci%d/access", card, gi, ci);
    ACT_AUTOFREE char *text = act_sprintf("DeviceFileMinor: %d\nDeviceFileMode: 292\nDeviceFileModify: 1\n", minor);

    gpus_put(gi_path, text);
    gpus_put(ci_path, text);
}

static void gpus_divided(void)
{
    gpus_cards(2);
    gpus_instance(0, 1, 0, 12);
    gpus_instance(0, 2, 0, 21);
}

/* As 'nvidia-smi -L' prints it. */
static const char divided[] = "GPU 0: NVIDIA A100 (UUID: " UUID(
    "0") ")\n"
         "  MIG 3g.20gb     Device  0: (UUID: MIG-c7384736-a75d-5afc-978f-d2f1294409fd)\n"
         "  MIG 3g.20gb     Device  1: (UUID: MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d)\n"
         "GPU 1: NVIDIA A100 (UUID: " UUID("1") ")\n";

TEST(test_instances_count_as_gpus)
{
    struct gpu_list list;

    gpus_divided();
    assert_given(&(struct gpu_masks){0}, "MIG-" UUID("0") "/1/0,MIG-" UUID("0") "/2/0," UUID("1"));
    gpus_find(dir, &list);
    ACT_AUTOFREE char *text = act_strdup(divided);
    gpus_take_instances(text, &list);
    ACT_AUTOFREE char *given = gpus_given_text(&list);
    assert_string_equal(given,
                        "MIG-c7384736-a75d-5afc-978f-d2f1294409fd,MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d," UUID("1"));
    ACT_AUTOFREE char *key = gpus_key(&list.v[1]);
    assert_string_equal(key, "mig-0-2-0");
    ACT_AUTOFREE char *second = gpus_of_rank(given, 1);
    assert_string_equal(second, "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d");
    assert_null(gpus_of_rank("0,1", 1));
    assert_null(gpus_of_rank("MIG-c7384736-a75d-5afc-978f-d2f1294409fd", 0));
    assert_null(gpus_of_rank(given, 3));
    gpu_list_release(&list);
}

TEST(test_instances_that_variables_name)
{
    gpus_divided();
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"MIG-" UUID("0") "/2/0"}}}, "MIG-" UUID("0") "/2/0");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d"}}},
                 "MIG-a28ad590-3fda-56dd-84fc-0a0b96edc58d");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"0"}}}, "MIG-" UUID("0") "/1/0");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"1"}}}, "1");
}

static void gpus_amd(int node, const char *properties, int render)
{
    ACT_AUTOFREE char *path = act_sprintf("sys/class/kfd/kfd/topology/nodes/%d/properties", node);
    ACT_AUTOFREE char *text = act_sprintf("%sdrm_render_minor %d\n", properties, render);
    ACT_AUTOFREE char *id_path = act_sprintf("sys/class/kfd/kfd/topology/nodes/%d/gpu_id", node);
    ACT_AUTOFREE char *id = act_sprintf("%d\n", 1000 + node);
    ACT_AUTOFREE char *device = act_sprintf("dri/renderD%d", render);

    gpus_put(path, text);
    gpus_put(id_path, id);
    gpus_device("kfd", true);
    gpus_device(device, true);
}

static void gpus_amd_machine(void)
{
    gpus_amd(0, "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\n", 0);
    gpus_amd(1, "cpu_cores_count 0\nsimd_count 440\nlocation_id 49408\ndomain 0\nunique_id 1311768467463790320\n", 128);
    gpus_amd(2, "cpu_cores_count 0\nsimd_count 440\nlocation_id 50688\ndomain 0\nunique_id 81985529216486895\n", 129);
    gpus_put("sys/class/drm/renderD128/device/mem_info_vram_total", "68702699520\n");
    gpus_put("sys/class/drm/renderD128/device/mem_info_vram_used", "11534336\n");
}

TEST(test_cards_of_amd)
{
    struct gpu_list list;

    gpus_amd_machine();
    gpus_put("sys/class/kfd/kfd/proc/1/vram_1001", "34359738368\n"); /* init is always there */
    gpus_put("sys/class/kfd/kfd/proc/1/vram_1002", "0\n");
    gpus_find(dir, &list);
    assert_int_equal(gpus_ask(dir, 1000, &list), GPUS_TOLD);
    assert_int_equal(list.n, 2);
    assert_int_equal(list.v[0].kind, GPU_AMD);
    assert_string_equal(list.v[0].bus, "0000:c1:00.0");
    assert_string_equal(list.v[0].uuid, "GPU-123456789abcdef0");
    assert_int_equal(list.v[0].used_bytes, 11534336);
    assert_int_equal(list.v[0].n_users, 1);
    assert_int_equal(list.v[0].users[0].pid, 1);
    assert_int_equal(list.v[1].n_users, 0);
    gpu_list_release(&list);
}

TEST(test_variables_of_amd)
{
    gpus_amd_machine();
    assert_given(&(struct gpu_masks){.v = {[MASK_ROCR] = (char[]){"1"}}}, "1");
    assert_given(&(struct gpu_masks){.v = {[MASK_ROCR] = (char[]){"GPU-0123456789abcdef"}}}, "1");
    assert_given(&(struct gpu_masks){.v = {[MASK_ROCR] = (char[]){"1"}, [MASK_HIP] = (char[]){"0"}}}, "1");
    assert_given(&(struct gpu_masks){.v = {[MASK_ROCR] = (char[]){"1"}, [MASK_HIP] = (char[]){"1"}}}, "");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"1"}}}, "1");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"1"}, [MASK_HIP] = (char[]){"0"}}}, "0");
    assert_given(&(struct gpu_masks){.v = {[MASK_ORDINAL] = (char[]){"0"}}}, "0");
}

TEST(test_graphics_of_a_processor_do_not_count)
{
    gpus_amd(0, "cpu_cores_count 8\nsimd_count 16\n", 128);
    gpus_put("sys/class/drm/renderD128/device/mem_info_vram_total", "536870912\n");
    gpus_put("sys/class/drm/renderD129/device/vendor", "0x8086\n");
    gpus_put("sys/class/drm/renderD129/device/uevent", "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n");
    gpus_device("dri/renderD129", true);
    assert_given(&(struct gpu_masks){0}, "");
}

TEST(test_cards_of_intel)
{
    for (int i = 0; i < 2; i++) {
        ACT_AUTOFREE char *vendor = act_sprintf("sys/class/drm/renderD%d/device/vendor", 128 + i);
        ACT_AUTOFREE char *event = act_sprintf("sys/class/drm/renderD%d/device/uevent", 128 + i);
        ACT_AUTOFREE char *text = act_sprintf("DRIVER=xe\nPCI_SLOT_NAME=0000:%d3:00.0\n", i);
        ACT_AUTOFREE char *device = act_sprintf("dri/renderD%d", 128 + i);
        gpus_put(vendor, "0x8086\n");
        gpus_put(event, text);
        gpus_device(device, true);
    }
    assert_given(&(struct gpu_masks){0}, "0,1");
    assert_given(&(struct gpu_masks){.v = {[MASK_ZE] = (char[]){"1.0,1.1"}}}, "1");
    assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"0"}}}, "0,1");
}

/* ---- which are given */

TEST(test_what_variables_give)
{
    static const struct {
        const char *cuda, *nvidia, *wanted;
    } cases[] = {
        {NULL, NULL, "0,1,2,3"},
        {"3", NULL, "3"},
        {"3,1", NULL, "1,3"},
        {" 2 , 0 ", NULL, "0,2"},
        {"", NULL, ""},
        {"-1", NULL, ""},
        {"1,-1,2", NULL, "1"}, /* everything behind the first that is none */
        {"1,7,2", NULL, "1"},
        {"NoDevFiles", NULL, ""},
        {"0,0", NULL, ""}, /* twice: none at all */
        {UUID("2"), NULL, "2"},
        {"GPU-2", NULL, "2"}, /* the beginning is enough */
        {"GPU-", NULL, ""},
        {"GPU-9", NULL, ""},
        {"GPU-1,GPU-9,GPU-2", NULL, "1"},
        {NULL, "all", "0,1,2,3"},
        {NULL, "", "0,1,2,3"},
        {NULL, "void", "0,1,2,3"}, /* of runtimes that give devices in another way */
        {NULL, "none", ""},
        {NULL, "2", "2"},
        {NULL, "4,5,6,7", "0,1,2,3"}, /* a container that sees these under other numbers */
        {NULL, "0:0", "0,1,2,3"},
        {NULL, UUID("3"), "3"},
        {"1", "1,2", "2"}, /* inside */
    };

    gpus_cards(4);
    for (size_t i = 0; i < COUNT(cases); i++) {
        ACT_AUTOFREE char *cuda = act_strdup(cases[i].cuda), *nvidia = act_strdup(cases[i].nvidia);
        assert_given(&(struct gpu_masks){.v = {[MASK_CUDA] = cuda, [MASK_NVIDIA] = nvidia}}, cases[i].wanted);
    }
}

TEST(test_why_not_all_are_given)
{
    struct gpu_masks masks = {.v = {[MASK_CUDA] = (char[]){"3"}}};
    struct gpu_list list;

    gpus_cards(4);
    gpus_find(dir, &list);
    assert_null(gpus_why_not_all(&masks, &list));
    gpus_apply_masks(&masks, &list);
    ACT_AUTOFREE char *why = gpus_why_not_all(&masks, &list);
    assert_string_equal(why, "CUDA_VISIBLE_DEVICES is '3'");
    gpu_list_release(&list);
}

static int take_named(const char *names, struct gpu_list *list)
{
    ACT_AUTOFREE char *copy = act_strdup(names);
    ACT_AUTO(act_strv) v = {0};
    char *rest = copy, *word;

    while ((word = strsep(&rest, ",")))
        act_strv_push(&v, word);
    return gpus_take_named(&v, list, &err);
}

TEST(test_gpus_by_name)
{
    static const struct {
        const char *names, *wanted; /* NULL: refused */
        const char *because;
    } cases[] = {
        {"2,3", "2,3", NULL},
        {UUID("1") ",GPU-3", "1,3", NULL},
        {"4", NULL, "has '4', and this machine has no such GPU: it has 0 to 3"},
        {"GPU-9", NULL, "has 'GPU-9', and this machine has no such GPU"},
        {"x", NULL, "has 'x'"},
        {"-1", NULL, "has '-1'"},
        {"2,2", NULL, "names that GPU twice"},
        {"2,GPU-2", NULL, "names that GPU twice"},
        {"0", NULL, "'0', and that GPU is not given to this process"},
    };
    struct gpu_list list;

    gpus_cards(4);
    for (size_t i = 0; i < COUNT(cases); i++) {
        gpus_find(dir, &list);
        gpus_apply_masks(&(struct gpu_masks){.v = {[MASK_CUDA] = (char[]){"1,2,3"}}}, &list);
        int rc = take_named(cases[i].names, &list);
        ACT_AUTOFREE char *given = gpus_given_text(&list);
        if (cases[i].wanted) {
            assert_ok(rc, err);
            assert_string_equal(given, cases[i].wanted);
        } else {
            assert_int_equal(rc, -ACT_CONFIG);
            assert_non_null(strstr(act_error_text(&err), cases[i].because));
        }
        gpu_list_release(&list);
    }
}

/* ---- how a process is told */

TEST(test_variables_for_a_process)
{
    struct gpu_masks before, after;
    struct gpu_list list;
    bool mine[4] = {false, true, false, true};

    gpu_masks_read(&before);
    gpus_cards(4);
    gpus_find(dir, &list);
    setenv("HIP_VISIBLE_DEVICES", "7", 1);
    gpus_show(&list, mine);
    gpu_masks_read(&after);
    assert_string_equal(after.v[MASK_CUDA], "1,3");
    assert_string_equal(after.v[MASK_ORDER], "PCI_BUS_ID");
    assert_null(after.v[MASK_HIP]);
    gpu_masks_restore(&before);
    gpu_masks_release(&before);
    gpu_masks_release(&after);
    gpu_list_release(&list);
}

TEST(test_variables_for_a_process_on_amd)
{
    struct gpu_masks before, after;
    struct gpu_list list;
    bool mine[2] = {false, true};

    gpu_masks_read(&before);
    gpus_amd_machine();
    gpus_find(dir, &list);
    setenv("CUDA_VISIBLE_DEVICES", "1", 1);
    gpus_show(&list, mine);
    gpu_masks_read(&after);
    assert_string_equal(after.v[MASK_ROCR], "1");
    assert_null(after.v[MASK_CUDA]);
    gpu_masks_restore(&before);
    gpu_masks_release(&before);
    gpu_masks_release(&after);
    gpu_list_release(&list);
}

/* ---- who uses them */

static void gpus_told(struct gpu_list *list, const char *memory, const char *users)
{
    ACT_AUTOFREE char *memory_text = act_strdup(memory), *users_text = act_strdup(users);

    gpus_cards(2);
    gpus_find(dir, list);
    gpus_take_memory(memory_text, list);
    gpus_take_users(users_text, list);
}

#define TWO_CARDS                                                                                                      \
    "0, " UUID("0") ", NVIDIA H100, 4, 81559, Disabled\n1, " UUID("1") ", NVIDIA H100, 31744, 81559, Disabled\n"

TEST(test_memory)
{
    struct gpu_list list;

    gpus_told(&list, TWO_CARDS, "");
    assert_int_equal(list.v[0].used_bytes, 4 << 20);
    assert_int_equal(list.v[1].memory_bytes, INT64_C(81559) << 20);
    assert_string_equal(list.v[1].model, "NVIDIA H100");
    assert_null(gpus_why_busy(&list.v[0], 5));
    ACT_AUTOFREE char *why = gpus_why_busy(&list.v[1], 5);
    assert_string_equal(why, "GPU 1 is used by a process that is not seen here (31 GiB)");
    assert_null(gpus_why_busy(&list.v[1], 50));
    gpu_list_release(&list);
}

TEST(test_memory_that_is_not_told)
{
    struct gpu_list list;

    gpus_told(&list, "0, " UUID("0") ", X, [N/A], [N/A], [N/A]\nNo devices were found\n\n, ,\n1\n", "");
    assert_int_equal(list.v[0].used_bytes, -1);
    assert_null(gpus_why_busy(&list.v[0], 0));
    gpu_list_release(&list);
}

TEST(test_a_process_of_this_user)
{
    struct gpu_list list;
    ACT_AUTOFREE char *users = act_sprintf(UUID("1") ", %d, /opt/a,b/python3, 31744\n", (int)getpid());

    gpus_told(&list, TWO_CARDS, users);
    assert_int_equal(list.v[1].n_users, 1);
    assert_string_equal(list.v[1].users[0].program, "python3");
    assert_true(list.v[1].users[0].is_mine);
    ACT_AUTOFREE char *why = gpus_why_busy(&list.v[1], 5);
    assert_non_null(strstr(why, "GPU 1 is used by a process of yours ("));
    assert_non_null(strstr(why, ", python3, 31 GiB, 0 min)"));
    assert_null(gpus_why_busy(&list.v[1], 50)); /* it may share what is its own */
    gpu_list_release(&list);
}

TEST(test_a_process_of_another_user)
{
    struct gpu_list list;

    gpus_told(&list, TWO_CARDS, UUID("1") ", 4711, python, 31744\nGPU-7, 1, x, 1\n" UUID("1") ", -1, x, 1\nx\n");
    assert_int_equal(list.v[1].n_users, 1);
    struct gpu_user *user = &list.v[1].users[0];
    act_str_replace(&user->user, "alice");
    user->is_mine = false;
    user->for_s = 4 * 3600 + 59;
    ACT_AUTOFREE char *why = gpus_why_busy(&list.v[1], 100);
    assert_string_equal(why, "GPU 1 is used by another user (alice, python, 31 GiB, 4 h)");
    ACT_AUTOFREE char *text = gpus_users_text(&list.v[1]);
    assert_string_equal(text, "alice, python, 31 GiB, 4 h");
    gpu_list_release(&list);
}

TEST(test_a_process_outside_of_the_container)
{
    struct gpu_list list;

    gpus_told(&list, TWO_CARDS, UUID("1") ", 0, [Not Found], [N/A]\n");
    ACT_AUTOFREE char *why = gpus_why_busy(&list.v[1], 50);
    assert_string_equal(why, "GPU 1 is used by a process that is not seen here ([Not Found])");
    gpu_list_release(&list);
}

/* ---- a program that plays nvidia-smi */

enum { IN_TIME_MS = 60 * 1000 };

static enum gpus_answer ask_program(const char *script, int limit_ms, struct gpu_list *list)
{
    ACT_AUTOFREE char *bin = act_path_join(dir, "bin");
    ACT_AUTOFREE char *program = act_path_join(bin, "nvidia-smi");
    ACT_AUTOFREE char *path = act_strdup(getenv("PATH"));
    ACT_AUTOFREE char *with = act_sprintf("%s:%s", bin, path);

    gpus_put("bin/nvidia-smi", script);
    assert_int_equal(chmod(program, 0755), 0);
    gpus_cards(2);
    gpus_find(dir, list);
    setenv("PATH", with, 1);
    enum gpus_answer answer = gpus_ask(dir, limit_ms, list);
    setenv("PATH", path, 1);
    return answer;
}

TEST(test_nvidia_smi_answers)
{
    struct gpu_list list;

    assert_int_equal(
        ask_program("#!/bin/sh\ncase $1 in --query-gpu*) printf '" TWO_CARDS "';; esac\n", IN_TIME_MS, &list),
        GPUS_TOLD);
    assert_int_equal(list.v[1].used_bytes, INT64_C(31744) << 20);
    gpu_list_release(&list);
}

TEST(test_nvidia_smi_hangs)
{
    struct gpu_list list;

    assert_int_equal(ask_program("#!/bin/sh\nexec sleep 100\n", 300, &list), GPUS_UNANSWERED);
    assert_int_equal(list.v[1].used_bytes, -1);
    gpu_list_release(&list);
}

/* Like one in a broken driver it does not hear SIGKILL, which is sent to its group: it has left that. */
TEST(test_nvidia_smi_does_not_even_die)
{
    static const char deaf[] = "#!/usr/bin/python3\n"
                               "import os, time\n"
                               "os.setpgid(0, os.getpgid(os.getppid()))\n"
                               "open('%s', 'a').write('%%d\\n' %% os.getpid())\n"
                               "time.sleep(600)\n";
    ACT_AUTOFREE char *pids = act_path_join(dir, "pids");
    ACT_AUTOFREE char *script = act_sprintf(deaf, pids);
    ACT_AUTOFREE char *text = NULL;
    struct gpu_list list;

    gpus_put("dev/shm/others", "");
    do { /* Python takes its time to begin */
        assert_int_equal(ask_program(script, 1000, &list), GPUS_UNANSWERED);
        gpu_list_release(&list);
        free(text);
        text = NULL;
    } while (act_file_read(pids, 4096, &text, NULL, NULL) < 0 || !strchr(text, '\n'));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(ask_program(script, 10, &list), GPUS_UNANSWERED);
        gpu_list_release(&list);
    }
    ACT_AUTOFREE char *all = NULL;
    assert_int_equal(act_file_read(pids, 4096, &all, NULL, NULL), 0);
    assert_string_equal(all, text); /* no other was started */
    assert_int_equal(kill((pid_t)atoi(all), SIGKILL), 0);
    assert_int_equal(
        ask_program("#!/bin/sh\ncase $1 in --query-gpu*) printf '" TWO_CARDS "';; esac\n", IN_TIME_MS, &list),
        GPUS_TOLD);
    gpu_list_release(&list);
}

TEST(test_nvidia_smi_fails)
{
    struct gpu_list list;

    assert_int_equal(ask_program("#!/bin/sh\necho 'NVIDIA-SMI has failed'; exit 9\n", IN_TIME_MS, &list), GPUS_FAILED);
    assert_non_null(gpus_answer_text(GPUS_FAILED));
    gpu_list_release(&list);
}

/* ---- which of them */

static const char topology[] = "\t\033[4mGPU0\tGPU1\tGPU2\tGPU3\tmlx5_0\tCPU Affinity\tNUMA Affinity\033[0m\n"
                               "GPU0\t X \tSYS\tNV12\tSYS\tSYS\t0-15\t0\n"
                               "GPU1\tSYS\t X \tSYS\tPHB\tSYS\t16-31\t1\n"
                               "GPU2\tNV12\tSYS\t X \tSYS\tSYS\t0-15\t0\n"
                               "GPU3\tSYS\tPHB\tSYS\t X \tSYS\t16-31\t1\n"
                               "mlx5_0\tSYS\tSYS\tSYS\tSYS\t X \t\t\n"
                               "\nLegend:\n\n  X    = Self\n";

TEST(test_near_ones_are_chosen)
{
    static const struct {
        bool can[4];
        size_t need;
        const char *wanted; /* NULL: there are not so many */
    } cases[] = {
        {{true, true, true, true}, 1, "0"},     {{true, true, true, true}, 2, "0,2"},
        {{false, true, true, true}, 2, "1,3"},  {{true, true, true, true}, 4, "0,1,2,3"},
        {{true, true, false, false}, 2, "0,1"}, {{true, false, false, false}, 2, NULL},
        {{true, true, true, true}, 0, ""},
    };
    struct gpu_list list;
    ACT_AUTOFREE char *text = act_strdup(topology);
    bool chosen[4];

    gpus_cards(4);
    gpus_find(dir, &list);
    gpus_take_topology(text, &list);
    assert_int_equal(list.n_near, 4);
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(gpus_choose(&list, cases[i].can, cases[i].need, chosen), cases[i].wanted != NULL);
        ACT_AUTOFREE char *mine = gpus_text(&list, chosen);
        if (cases[i].wanted)
            assert_string_equal(mine, cases[i].wanted);
    }
    gpu_list_release(&list);
}

TEST(test_a_topology_that_is_not_whole)
{
    static const char *const texts[] = {"", "\tGPU0\tGPU1\nGPU0\t X \n", "\tGPU0\tGPU1\nGPU0\t X \tOK\nGPU1\tOK\t X \n",
                                        "Failed to run topology matrix\n"};
    struct gpu_list list;

    gpus_cards(2);
    for (size_t i = 0; i < COUNT(texts); i++) {
        ACT_AUTOFREE char *text = act_strdup(texts[i]);
        gpus_find(dir, &list);
        gpus_take_topology(text, &list);
        assert_null(list.near);
        gpu_list_release(&list);
    }
}

TEST(test_the_same_numa_node_where_nothing_else_is_known)
{
    struct gpu_list list;
    bool can[4] = {true, true, true, true}, chosen[4];

    gpus_cards(4);
    for (int i = 0; i < 4; i++) {
        ACT_AUTOFREE char *path = act_sprintf("sys/bus/pci/devices/0000:%d0:00.0/numa_node", i + 1);
        gpus_put(path, i == 1 || i == 2 ? "1\n" : i == 0 ? "0\n" : "2\n");
    }
    gpus_find(dir, &list);
    assert_true(gpus_choose(&list, can, 2, chosen));
    ACT_AUTOFREE char *mine = gpus_text(&list, chosen);
    assert_string_equal(mine, "1,2");
    gpu_list_release(&list);
}

TEST_MAIN(NULL, NULL)
