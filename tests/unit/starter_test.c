/* starter_test.c - commands that start the processes of a node by themselves, and what is filled in. */
#include "unit/test.h"

#include "run/starter.h"

/* New string. */
static char *starter_test_text_of(const struct act_strv *words)
{
    struct act_buf b = {0};

    for (size_t i = 0; i < words->n; i++)
        act_buf_addf(&b, "%s%s", i ? " " : "", words->v[i]);
    return act_buf_steal(&b);
}

/* Two nodes of eight, or one, whose GPUs the environment names. */
static const struct run_starter_place two = {.nodes = 2,
                                             .per_node = 8,
                                             .node_rank = 1,
                                             .address = "n0",
                                             .port = "20001",
                                             .id = "exp_1",
                                             .hosts = "/hosts"},
                                      one = {.nodes = 1,
                                             .per_node = 2,
                                             .node_rank = 0,
                                             .address = "127.0.0.1",
                                             .port = "20001",
                                             .id = "exp_1",
                                             .hosts = "/hosts",
                                             .narrowed = true};

#define TORCH_TWO "--nnodes=2 --nproc_per_node=8 --node_rank=1 --master_addr=n0 --master_port=20001"
#define ACCELERATE_TWO                                                                                                 \
    "--num_machines=2 --num_processes=16 --machine_rank=1 --main_process_ip=n0 --main_process_port=20001 "             \
    "--deepspeed_multinode_launcher=standard"
#define DEEPSPEED_TWO "--num_gpus=8 --hostfile=/hosts --no_ssh --node_rank=1 --master_addr=n0 --master_port=20001"

TEST(test_what_is_filled_in)
{
    static const struct {
        const struct run_starter_place *place;
        const char *name, *command, *filled;
    } rows[] = {
        {&two, "torchrun", "torchrun train.py --nnodes 3", "torchrun " TORCH_TWO " train.py --nnodes 3"},
        {&two, "torchrun", "/opt/bin/torchrun -m --tee 3 pkg.train",
         "/opt/bin/torchrun " TORCH_TWO " -m --tee 3 pkg.train"},
        {&two, "torch.distributed.run", "python3.11 -u -W ignore -m torch.distributed.run t.py",
         "python3.11 -u -W ignore -m torch.distributed.run " TORCH_TWO " t.py"},
        {&two, "torch.distributed.launch", "python -m torch.distributed.launch --use_env t.py",
         "python -m torch.distributed.launch " TORCH_TWO " --use_env t.py"},
        {&two, "torchrun", "torchrun --nproc-per-node 4 --nnodes=1:2 --node_rank=0 t.py",
         "torchrun --master_addr=n0 --master_port=20001 --nproc-per-node 4 --nnodes=1:2 --node_rank=0 t.py"},
        {&two, "torchrun", "torchrun --rdzv-backend c10d t.py",
         "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=1 --rdzv_endpoint=n0:20001 --rdzv_id=exp_1 "
         "--rdzv-backend c10d t.py"},
        {&two, "torchrun", "torchrun --rdzv_backend=c10d --rdzv_endpoint=h:1 --rdzv_id=7 t.py",
         "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=1 --rdzv_backend=c10d --rdzv_endpoint=h:1 --rdzv_id=7 "
         "t.py"},
        {&one, "torchrun", "torchrun --standalone t.py", "torchrun --nproc_per_node=2 --standalone t.py"},
        {&two, "torchrun", "torchrun", "torchrun " TORCH_TWO},
        {&two, "torchrun", "torchrun --master_port",
         "torchrun --nnodes=2 --nproc_per_node=8 --node_rank=1 "
         "--master_addr=n0 --master_port"},
        {&two, "accelerate", "accelerate launch --mixed_precision bf16 t.py",
         "accelerate launch " ACCELERATE_TWO " --mixed_precision bf16 t.py"},
        {&two, "accelerate-launch", "accelerate-launch --use-deepspeed -q t.py --num_machines 9",
         "accelerate-launch " ACCELERATE_TWO " --use-deepspeed -q t.py --num_machines 9"},
        {&one, "accelerate.commands.launch", "python -m accelerate.commands.launch --num-processes=1 t.py",
         "python -m accelerate.commands.launch --num_machines=1 --machine_rank=0 --main_process_ip=127.0.0.1 "
         "--main_process_port=20001 --num-processes=1 t.py"},
        {&two, "deepspeed", "deepspeed --module t --deepspeed", "deepspeed " DEEPSPEED_TWO " --module t --deepspeed"},
        {&two, "deepspeed", "deepspeed -Hmine -i n0@n1 t.py",
         "deepspeed --no_ssh --node_rank=1 --master_addr=n0 --master_port=20001 -Hmine -i n0@n1 t.py"},
        {&one, "deepspeed", "deepspeed t.py", "deepspeed --master_port=20001 t.py"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv argv = words_of(rows[i].command);
        struct run_starter starter;
        if (!run_starter_find(&argv, true, &starter))
            fail_msg("'%s' was not found", rows[i].command);
        assert_string_equal(starter.name, rows[i].name);
        run_starter_fill(&starter, rows[i].place, &argv);
        ACT_AUTOFREE char *text = starter_test_text_of(&argv);
        assert_string_equal(text, rows[i].filled);
        act_strv_release(&argv);
    }
}

TEST(test_commands_that_are_none)
{
    static const char *const commands[] = {"",
                                           "python train.py -m torch.distributed.run",
                                           "python -m torch.distributed.ru",
                                           "python -m",
                                           "python",
                                           "sh -m torch.distributed.run",
                                           "accelerate config",
                                           "accelerate",
                                           "mytorchrun t.py",
                                           "pythonx -m torch.distributed.run",
                                           "torch.distributed.run t.py",
                                           "python -m torchrun",
                                           "python -c torchrun"};
    struct run_starter starter;

    for (size_t i = 0; i < COUNT(commands); i++) {
        struct act_strv argv = words_of(commands[i]);
        if (run_starter_find(&argv, true, &starter))
            fail_msg("'%s' was taken for %s", commands[i], starter.name);
        act_strv_release(&argv);
    }
    struct act_strv argv = words_of("accelerate launch t.py");
    assert_true(run_starter_find(&argv, true, &starter));
    assert_false(run_starter_find(&argv, false, &starter)); /* Open MPI starts it on processors */
    act_strv_release(&argv);
}

TEST(test_numbers_that_the_user_wrote)
{
    static const struct {
        const char *command;
        enum run_starter_number number;
        const char *option, *text;
    } rows[] = {
        {"torchrun --nproc_per_node 2 --nproc-per-node=4 t.py", RUN_STARTER_PER_NODE, "nproc_per_node", "4"},
        {"torchrun --nnodes=1:4 t.py", RUN_STARTER_NODES, "nnodes", "1:4"},
        {"torchrun t.py --nnodes=3", RUN_STARTER_NODES, NULL, NULL},
        {"accelerate launch --num_processes 8 t.py", RUN_STARTER_TOTAL, "num_processes", "8"},
        {"deepspeed --num_nodes 3 t.py", RUN_STARTER_NODES, "num_nodes", "3"},
        {"deepspeed --num_accelerators 3 t.py", RUN_STARTER_PER_NODE, "num_accelerators", "3"},
        {"deepspeed t.py", RUN_STARTER_TOTAL, NULL, NULL},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct act_strv argv = words_of(rows[i].command);
        struct run_starter starter;
        const char *option = NULL;
        assert_true(run_starter_find(&argv, true, &starter));
        const char *text = run_starter_written(&starter, &argv, rows[i].number, &option);
        if (!act_streq(text, rows[i].text) || !act_streq(option, rows[i].option))
            fail_msg("%s: '%s' of '%s'", rows[i].command, text ? text : "-", option ? option : "-");
        act_strv_release(&argv);
    }
}

TEST_MAIN(NULL, NULL)
