#!/bin/bash
# a job: mixtral-8x7b on 8 x 8 devices, tp2 pp4 dp8 mb1 recompute=none ep8 sp zero1
# global batch 256, bf16
# Megatron-LM with Megatron-Core 0.11 or later: run it in its folder on every server.
# By hand: MASTER_ADDR=FIRST NODE_RANK=I bash train.sh on server I of 8.
# DATA_ARGS replaces the made-up data; SAVE, LOAD, SAVE_INTERVAL, EVAL_ITERS and EVAL_INTERVAL are those of Megatron-LM.
set -euo pipefail
# The quoted sentences end the script where a value is missing.
: "${MASTER_ADDR:?is not set; set it to the address of the first server}"
: "${NODE_RANK:?is not set; set it to the number of this server, 0 to 7}"
# Kernels start in the order of their launch, so that communication begins before what hides it.
export CUDA_DEVICE_MAX_CONNECTIONS=1
read -ra DATA <<<"${DATA_ARGS:---mock-data --tokenizer-type NullTokenizer --vocab-size 31999}"
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
  --num-layers 32
  --hidden-size 4096
  --ffn-hidden-size 14336
  --num-attention-heads 32
  --kv-channels 128
  --group-query-attention
  --num-query-groups 8
  --seq-length 8192
  --max-position-embeddings 8192
  --position-embedding-type rope
  --rotary-base 1000000
  --rotary-percent 1.0
  --normalization RMSNorm
  --norm-epsilon 1e-05
  --swiglu
  --untie-embeddings-and-output-weights
  --disable-bias-linear
  --make-vocab-size-divisible-by 128
)
EXPERTS=(
  --num-experts 8
  --expert-model-parallel-size 8
  --expert-tensor-parallel-size 2
  --moe-ffn-hidden-size 14336
  --moe-router-topk 2
  --moe-router-score-function softmax
  --moe-router-dtype fp32
  --moe-router-load-balancing-type aux_loss
  --moe-aux-loss-coeff 0.02
  --moe-token-dispatcher-type alltoall
  --moe-permute-fusion
  --moe-grouped-gemm
)
PARALLEL=(
  --tensor-model-parallel-size 2
  --pipeline-model-parallel-size 4
  --context-parallel-size 1
  --sequence-parallel
  --use-distributed-optimizer
  --overlap-grad-reduce
  --overlap-param-gather
)
TRAINING=(
  --micro-batch-size 1
  --global-batch-size 256
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
  "${EXPERTS[@]}" \
  "${PARALLEL[@]}" \
  "${TRAINING[@]}" \
  "${CHECKPOINTS[@]}" "${DATA[@]}" "$@"
