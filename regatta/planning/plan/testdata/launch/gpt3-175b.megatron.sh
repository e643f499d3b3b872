#!/bin/bash
# a job: gpt3-175b on 128 x 8 devices, tp8 pp8 dp16 mb1 recompute=selective vp3 sp zero1
# global batch 1536, bf16
# Megatron-LM with Megatron-Core 0.9 or later: run it in its folder on every server.
# By hand: MASTER_ADDR=FIRST NODE_RANK=I bash train.sh on server I of 128.
# DATA_ARGS replaces the made-up data; SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and EVAL_INTERVAL are those of Megatron-LM.
set -euo pipefail
# The quoted sentences end the script where a value is missing.
: "${MASTER_ADDR:?is not set; set it to the address of the first server}"
: "${NODE_RANK:?is not set; set it to the number of this server, 0 to 127}"
# Kernels start in the order of their launch, so that communication begins before what hides it.
export CUDA_DEVICE_MAX_CONNECTIONS=1
read -ra DATA <<<"${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --vocab-size 51199}"
CHECKPOINTS=()
if [[ -n ${SAVE:-} ]]; then
  CHECKPOINTS+=(--save "$SAVE" --save-interval "${SAVE_INTERVAL:-1000}")
fi
if [[ -n ${LOAD:-} ]]; then CHECKPOINTS+=(--load "$LOAD"); fi
RANKS=(
  --nnodes 128
  --nproc-per-node 8
  --node-rank "$NODE_RANK"
  --master-addr "$MASTER_ADDR"
  --master-port "${MASTER_PORT:-29500}"
)
MODEL=(
  --num-layers 96
  --hidden-size 12288
  --ffn-hidden-size 49152
  --num-attention-heads 96
  --kv-channels 128
  --seq-length 2048
  --max-position-embeddings 2048
  --position-embedding-type learned_absolute
  --normalization LayerNorm
  --norm-epsilon 1e-05
  --make-vocab-size-divisible-by 128
)
PARALLEL=(
  --tensor-model-parallel-size 8
  --pipeline-model-parallel-size 8
  --context-parallel-size 1
  --num-layers-per-virtual-pipeline-stage 4
  --sequence-parallel
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
  --recompute-granularity selective
)
TRAINING=(
  --micro-batch-size 1
  --global-batch-size 1536
  --bf16
  --attention-dropout 0
  --hidden-dropout 0
  --train-iters 1000
  --lr 0.0003
  --min-lr 3e-05
  --lr-decay-style cosine
  --lr-warmup-iters 100
  --adam-beta1 0.9
  --adam-beta2 0.95
  --adam-eps 1e-08
  --weight-decay 0
  --clip-grad 1
  --log-interval 1
  --eval-iters "${EVAL_ITERS:-0}"
  --eval-interval "${EVAL_INTERVAL:-1000}"
  --no-create-attention-mask-in-dataloader
)
exec torchrun "${RANKS[@]}" pretrain_gpt.py \
  "${MODEL[@]}" \
  "${PARALLEL[@]}" \
  "${TRAINING[@]}" \
  "${CHECKPOINTS[@]}" "${DATA[@]}" "$@"
