#!/bin/bash
# a job: llama2-7b on 2 x 8 devices, tp1 pp1 dp16 mb2 recompute=full zero3/8
# global batch 128, bf16
# torchtitan 0.2: run it in its folder on every server.
# By hand: MASTER_ADDR=FIRST NODE_RANK=I bash train.sh on server I of 2.
# CONFIG_FILE is a configuration to begin with, for data and tokenizer; SAVE a folder of checkpoints, LOAD one to begin with.
# Left out: evaluation; --validation.enable and its options switch it on.
set -euo pipefail
# The quoted sentences end the script where a value is missing.
: "${MASTER_ADDR:?is not set; set it to the address of the first server}"
: "${NODE_RANK:?is not set; set it to the number of this server, 0 to 1}"
cat >regatta_model.py <<'END'
from torchtitan.models.llama3.model.args import TransformerModelArgs
from torchtitan.protocols.train_spec import get_train_spec

get_train_spec("llama3").model_args["llama2-7b"] = TransformerModelArgs(dim=4096, n_layers=32, n_heads=32, n_kv_heads=32, vocab_size=32000, multiple_of=256, ffn_dim_multiplier=0.996155, rope_theta=10000, norm_eps=1e-05)
END
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
CHECKPOINTS=()
if [[ -n ${SAVE:-} ]]; then
  CHECKPOINTS+=(--checkpoint.enable --checkpoint.folder "$SAVE"
    --checkpoint.interval "${SAVE_INTERVAL:-1000}")
fi
if [[ -n ${LOAD:-} ]]; then
  CHECKPOINTS+=(--checkpoint.initial_load_path "$LOAD")
fi
RANKS=(
  --nnodes 2
  --nproc-per-node 8
  --node-rank "$NODE_RANK"
  --master-addr "$MASTER_ADDR"
  --master-port "${MASTER_PORT:-29500}"
)
MODEL=(
  --model.name llama3
  --model.flavor llama2-7b
  --experimental.custom_import regatta_model
)
PARALLEL=(
  --parallelism.data_parallel_replicate_degree 2
  --parallelism.data_parallel_shard_degree 8
  --parallelism.fsdp_reshard_after_forward always
  --parallelism.tensor_parallel_degree 1
  --parallelism.context_parallel_degree 1
  --parallelism.pipeline_parallel_degree 1
)
TRAINING=(
  --training.local_batch_size 2
  --training.global_batch_size 128
  --training.seq_len 4096
  --training.mixed_precision_param bfloat16
  --activation_checkpoint.mode full
  --compile.enable
  --training.steps 1000
  --training.max_norm 1
  --optimizer.name AdamW
  --optimizer.lr 0.0003
  --optimizer.beta1 0.9
  --optimizer.beta2 0.95
  --optimizer.eps 1e-08
  --optimizer.weight_decay 0
  --lr_scheduler.warmup_steps 100
  --lr_scheduler.decay_type cosine
  --lr_scheduler.min_lr_factor 0.1
  --job.description 'a job'
)
exec torchrun "${RANKS[@]}" -m torchtitan.train ${CONFIG_FILE:+--job.config_file "$CONFIG_FILE"} \
  "${MODEL[@]}" \
  "${PARALLEL[@]}" \
  "${TRAINING[@]}" \
  "${CHECKPOINTS[@]}" "$@"
