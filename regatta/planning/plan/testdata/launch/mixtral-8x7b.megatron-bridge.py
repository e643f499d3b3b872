#!/usr/bin/env python3
# a job: mixtral-8x7b on 8 x 8 devices, tp2 pp4 dp8 mb1 recompute=none ep8 sp zero1
# global batch 256, bf16
# Megatron Bridge of 2026, which has ValidationConfig: run it on every server.
# By hand: MASTER_ADDR=FIRST NODE_RANK=I python3 train.py on server I of 8.
# DATA_PATH replaces the made-up data; SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and EVAL_INTERVAL set the rest.
import os
import sys

# In the order of their node ranks.
SERVERS = []


def find_place():
    if SERVERS and "SLURM_STEP_ID" in os.environ and "NODE_RANK" not in os.environ:
        name = os.environ.get("SLURMD_NODENAME", "this server")
        if name not in SERVERS:
            sys.exit(f"NODE_RANK: is not set and {name} is none of the servers of the plan; "
                     "give srun --nodelist of --print-servers")
        os.environ["NODE_RANK"] = str(SERVERS.index(name))
        os.environ.setdefault("MASTER_ADDR", SERVERS[0])
    for name, value in (("MASTER_ADDR", "the address of the first server"),
                        ("NODE_RANK", "the number of this server, 0 to 7")):
        if not os.environ.get(name):
            sys.exit(f"{name}: is not set; set it to {value}")
    return os.environ["MASTER_ADDR"], os.environ["NODE_RANK"]


def start():
    address, rank = find_place()
    os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "1")
    os.execvp("torchrun", [
        "torchrun", "--nnodes", "8", "--nproc-per-node", "8",
        "--node-rank", rank, "--master-addr", address,
        "--master-port", os.environ.get("MASTER_PORT", "29500"),
        os.path.abspath(__file__), *sys.argv[1:],
    ])


def pretrain_config():
    import torch
    from megatron.bridge.models.gpt_provider import GPTModelProvider
    from megatron.bridge.training.config import (
        CheckpointConfig,
        ConfigContainer,
        DistributedDataParallelConfig,
        GPTDatasetConfig,
        LoggerConfig,
        OptimizerConfig,
        RNGConfig,
        SchedulerConfig,
        TokenizerConfig,
        TrainingConfig,
        ValidationConfig,
    )
    from megatron.bridge.training.mixed_precision import MixedPrecisionConfig

    return ConfigContainer(
        model=GPTModelProvider(
            num_layers=32,
            hidden_size=4096,
            ffn_hidden_size=14336,
            num_attention_heads=32,
            seq_length=8192,
            vocab_size=32000,
            should_pad_vocab=True,
            make_vocab_size_divisible_by=128,
            num_query_groups=8,
            kv_channels=128,
            qk_layernorm=False,
            position_embedding_type="rope",
            rotary_base=1000000,
            rotary_percent=1.0,
            normalization="RMSNorm",
            layernorm_epsilon=1e-05,
            gated_linear_unit=True,
            activation_func=torch.nn.functional.silu,
            share_embeddings_and_output_weights=False,
            add_bias_linear=False,
            add_qkv_bias=False,
            attention_dropout=0,
            hidden_dropout=0,
            num_moe_experts=8,
            expert_model_parallel_size=8,
            expert_tensor_parallel_size=2,
            moe_ffn_hidden_size=14336,
            moe_router_topk=2,
            moe_router_score_function="softmax",
            moe_router_pre_softmax=False,
            moe_router_enable_expert_bias=False,
            moe_router_dtype="fp32",
            moe_router_load_balancing_type="aux_loss",
            moe_aux_loss_coeff=0.02,
            moe_token_dispatcher_type="alltoall",
            moe_permute_fusion=True,
            moe_grouped_gemm=True,
            tensor_model_parallel_size=2,
            sequence_parallel=True,
            pipeline_model_parallel_size=4,
            context_parallel_size=1,
        ),
        train=TrainingConfig(
            train_iters=1000,
            global_batch_size=256,
            micro_batch_size=1,
        ),
        validation=ValidationConfig(
            eval_iters=int(os.environ.get("EVAL_ITERS", "0")),
            eval_interval=int(os.environ.get("EVAL_INTERVAL", "1000")),
        ),
        optimizer=OptimizerConfig(
            optimizer="adam",
            lr=0.0003,
            min_lr=3e-05,
            adam_beta1=0.9,
            adam_beta2=0.95,
            adam_eps=1e-08,
            weight_decay=0,
            clip_grad=1,
            use_distributed_optimizer=True,
        ),
        scheduler=SchedulerConfig(
            lr_decay_style="cosine",
            lr_decay_iters=1000,
            lr_warmup_iters=100,
            start_weight_decay=0,
            end_weight_decay=0,
            weight_decay_incr_style="constant",
        ),
        ddp=DistributedDataParallelConfig(
            grad_reduce_in_fp32=True,
            overlap_grad_reduce=True,
            overlap_param_gather=True,
            use_distributed_optimizer=True,
        ),
        dataset=GPTDatasetConfig(
            seq_length=8192,
            random_seed=1234,
            reset_position_ids=False,
            reset_attention_mask=False,
            eod_mask_loss=False,
            skip_getting_attention_mask_from_dataset=True,
            data_path=os.environ.get("DATA_PATH"),
            split="9999,8,2",
            dataloader_type="single",
        ),
        logger=LoggerConfig(
            log_interval=1,
        ),
        tokenizer=TokenizerConfig(
            tokenizer_type="NullTokenizer",
            vocab_size=31999,
        ),
        checkpoint=CheckpointConfig(
            save=os.environ.get("SAVE"),
            load=os.environ.get("LOAD"),
            save_interval=int(os.environ.get("SAVE_INTERVAL", "1000")),
            ckpt_format="torch_dist",
        ),
        rng=RNGConfig(
            seed=1234,
        ),
        mixed_precision=MixedPrecisionConfig(
            bf16=True,
            params_dtype=torch.bfloat16,
            pipeline_dtype=torch.bfloat16,
            grad_reduce_in_fp32=True,
        ),
    )


def main():
    if sys.argv[1:2] == ["--print-servers"]:
        print(",".join(SERVERS))
    elif sys.argv[1:2] == ["--print-hostfile"]:
        print("\n".join(f"{name} slots=8" for name in SERVERS))
    elif "LOCAL_RANK" not in os.environ:
        start()
    else:
        from megatron.bridge.training.gpt_step import forward_step
        from megatron.bridge.training.pretrain import pretrain

        pretrain(config=pretrain_config(), forward_step_func=forward_step)


if __name__ == "__main__":
    main()
