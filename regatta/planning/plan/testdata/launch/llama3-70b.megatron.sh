#!/bin/bash
# a job: llama3-70b on 8 x 8 devices, tp4 pp4 dp2 mb1 recompute=none cp2 vp5 sp zero1
# global batch 128, fp8
# Megatron-LM with Megatron-Core 0.10 or later: run it in its folder on every server.
# By hand: MASTER_ADDR=FIRST NODE_RANK=I bash train.sh on server I of 8.
# DATA_ARGS replaces the made-up data; SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and EVAL_INTERVAL are those of Megatron-LM.
# The vocabulary of 128256 is padded to 128512, a multiple of 128 x tp.
set -euo pipefail
# The quoted sentences end the script where a value is missing.
: "${MASTER_ADDR:?is not set; set it to the address of the first server}"
: "${NODE_RANK:?is not set; set it to the number of this server, 0 to 7}"
# Kernels start in the order of their launch, so that communication begins before what hides it.
export CUDA_DEVICE_MAX_CONNECTIONS=1
read -ra DATA <<<"${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --vocab-size 128255}"
CHECKPOINTS=()
if [[ -n ${SAVE:-} ]]; then
  CHECKPOINTS+=(--save "$SAVE" --save-interval "${SAVE_INTERVAL:-1000}")
fi
if [[ -n ${LOAD:-} ]]; then CHECKPOINTS+=(--load "$LOAD"); fi
RANKS=(
  --nnodes 8
  --nproc-per-node 8
  --node-rank "$NODE_RANK"
  --master-addr "$MASTER_ADDR"
  --master-port "${MASTER_PORT:-29500}"
)
MODEL=(
  --num-layers 80
  --hidden-size 8192
  --ffn-hidden-size 28672
  --num-attention-heads 64
  --kv-channels 128
  --group-query-attention
  --num-query-groups 8
  --seq-length 8192
  --max-position-embeddings 8192
  --position-embedding-type rope
  --rotary-base 500000
  --rotary-percent 1.0
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --swiglu
  --untie-embeddings-and-output-weights
  --disable-bias-linear
  --make-vocab-size-divisible-by 128
)
PARALLEL=(
  --tensor-model-parallel-size 4
  --pipeline-model-parallel-size 4
  --context-parallel-size 2
  --cp-comm-type p2p
  --num-layers-per-virtual-pipeline-stage 4
  --sequence-parallel
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
)
TRAINING=(
  --micro-batch-size 1
  --global-batch-size 128
  --bf16
  --fp8-format hybrid
  --fp8-recipe delayed
  --fp8-amax-history-len 1024
  --fp8-amax-compute-algo max
  --transformer-impl transformer_engine
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
