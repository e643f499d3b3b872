#!/bin/bash
# a job: llama2-7b on 2 x 8 devices, tp1 pp1 dp16 mb2 recompute=full zero3/8
# global batch 128, bf16
# DeepSpeed 0.16 or later: run it on the first server, which reaches the others by ssh; LAUNCHER=slurm inside an allocation.
# HOSTFILE names other servers, SCRIPT the program, which makes its engine with deepspeed.initialize,
# samples of 4096 tokens, and what it saves, loads and evaluates: no configuration has them.
# It must call deepspeed.checkpointing.checkpoint around each block.
# It must make its model in deepspeed.zero.MiCS_Init.
set -euo pipefail
: "${HOSTFILE:?is not set; set it to a file that names the servers in the order of their ranks}"
cat >ds_config.json <<'END'
{
  "train_batch_size": 128,
  "train_micro_batch_size_per_gpu": 2,
  "gradient_accumulation_steps": 4,
  "gradient_clipping": 1.0,
  "zero_optimization": {
    "stage": 3,
    "overlap_comm": true,
    "contiguous_gradients": true,
    "reduce_scatter": true,
    "mics_shard_size": 8,
    "mics_hierarchical_params_gather": false
  },
  "bf16": {
    "enabled": true
  },
  "optimizer": {
    "type": "AdamW",
    "params": {
      "lr": 0.0003,
      "betas": [
        0.9,
        0.95
      ],
      "eps": 1e-08,
      "weight_decay": 0.0
    }
  },
  "scheduler": {
    "type": "WarmupCosineLR",
    "params": {
      "total_num_steps": 1000,
      "warmup_num_steps": 100,
      "warmup_type": "linear",
      "cos_min_ratio": 0.1
    }
  },
  "activation_checkpointing": {
    "number_checkpoints": 32,
    "partition_activations": false,
    "cpu_checkpointing": false
  }
}
END
LAUNCH=(
  --hostfile "${HOSTFILE:-hostfile}"
  --num_nodes 2
  --num_gpus 8
  --launcher "${LAUNCHER:-pdsh}"
  --master_port "${MASTER_PORT:-29500}"
)
exec deepspeed "${LAUNCH[@]}" "${SCRIPT:-train.py}" --deepspeed --deepspeed_config ds_config.json "$@"
