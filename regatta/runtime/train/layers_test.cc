// The written-out backward passes against libtorch's autograd on the same model.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include <ATen/core/ivalue.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/softmax.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/train/internal/stage.h"
#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

constexpr std::int64_t kBatch = 2;

// The model once more, in the plainest form: [batch, seq, hidden], autograd.
class PlainModel {
 public:
  PlainModel(const workload::ModelShape& shape, const Parameters& parameters) : shape_(shape) {
    for (const Parameter& parameter : parameters.list)
      weights_[parameter.spec.name] = parameter.value.detach().clone().requires_grad_(true);
  }

  // tokens, targets: [seq * batch], position-major. Mean cross-entropy.
  Tensor loss(const Tensor& tokens, const Tensor& targets) {
    const Tensor ids = tokens.view({shape_.seq, kBatch}).t();
    Tensor x = weights_["token.weight"].index({ids}).add(weights_["position.weight"]);
    for (int layer = 0; layer < shape_.layers; ++layer)
      x = block(x, "block" + std::to_string(layer) + ".");
    x = norm(x, "norm");
    const Tensor logits =
        at::linear(x, weights_[shape_.tied_embeddings ? "token.weight" : "output.weight"]);
    const Tensor labels = targets.view({shape_.seq, kBatch}).t();
    return at::cross_entropy_loss(logits.reshape({-1, shape_.vocab}), labels.reshape({-1}));
  }

  Tensor gradient(const std::string& name) { return weights_[name].grad(); }

 private:
  Tensor norm(const Tensor& x, const std::string& name) {
    return at::layer_norm(x, {shape_.hidden}, weights_[name + ".weight"], weights_[name + ".bias"]);
  }

  Tensor linear(const Tensor& x, const std::string& name) {
    return at::linear(x, weights_[name + ".weight"], weights_[name + ".bias"]);
  }

  Tensor block(const Tensor& x, const std::string& name) {
    const std::int64_t d = shape_.hidden / shape_.heads;
    const Tensor qkv = linear(norm(x, name + "norm1"), name + "qkv")
                           .view({kBatch, shape_.seq, shape_.heads, 3, d})
                           .permute({3, 0, 2, 1, 4});
    const Tensor scores = at::matmul(qkv[0], qkv[1].transpose(-1, -2)).div(std::sqrt(double(d)));
    const Tensor context =
        at::matmul(at::softmax(scores.add(causal_mask(shape_.seq, at::kFloat)), -1), qkv[2]);
    const Tensor joined = context.transpose(1, 2).reshape({kBatch, shape_.seq, shape_.hidden});
    const Tensor y = x.add(linear(joined, name + "proj"));
    return y.add(linear(at::gelu(linear(norm(y, name + "norm2"), name + "up")), name + "down"));
  }

  workload::ModelShape shape_;
  std::map<std::string, Tensor> weights_;
};

void expect_equal_gradients(const Parameters& parameters, PlainModel& plain) {
  for (const Parameter& parameter : parameters.list) {
    const Tensor expected = plain.gradient(parameter.spec.name);
    const double error = parameter.gradient.sub(expected).abs().max().item().toDouble();
    EXPECT_LT(error, 1e-5 + 1e-4 * expected.abs().max().item().toDouble()) << parameter.spec.name;
  }
}

MicroBatch random_micro_batch(std::int64_t vocab, std::int64_t tokens) {
  return {.index = 0,
          .tokens = at::randint(vocab, {tokens}, at::kLong),
          .targets = at::randint(vocab, {tokens}, at::kLong)};
}

struct Case {
  bool tied = false;
  workload::Recompute recompute = workload::Recompute::kNone;
};

class LayerGradients : public testing::TestWithParam<Case> {};

TEST_P(LayerGradients, EqualThoseOfAutograd) {
  workload::Job job = test::tiny_job();
  job.model.tied_embeddings = GetParam().tied;
  job.global_batch = kBatch;
  const workload::Strategy strategy{.micro_batch = kBatch, .recompute = GetParam().recompute};
  const Parameters parameters =
      make_parameters(stage_parameters(job.model, strategy, {}), {.seed = 3});
  const std::int64_t tokens = kBatch * job.model.seq;
  const MicroBatch micro_batch = random_micro_batch(job.model.vocab, tokens);
  PhaseClock clock(Rank{0});
  TpGroup alone(nullptr, clock);
  Stage stage(job, strategy, {}, parameters, alone);
  std::vector<std::int64_t> ready;
  ASSERT_TRUE(stage.forward(micro_batch, Tensor()));
  ASSERT_TRUE(stage.backward(Tensor(), [&](std::int64_t end) { ready.push_back(end); }));

  PlainModel plain(job.model, parameters);
  const Tensor loss = plain.loss(micro_batch.tokens, micro_batch.targets);
  loss.backward();
  EXPECT_NEAR(stage.take_loss_sum() / static_cast<double>(tokens), loss.item().toDouble(), 1e-5);
  expect_equal_gradients(parameters, plain);
  EXPECT_TRUE(std::is_sorted(ready.begin(), ready.end()));
  EXPECT_EQ(ready.back(), parameters.gradient.numel());
}

INSTANTIATE_TEST_SUITE_P(All, LayerGradients,
                         testing::Values(Case{}, Case{.tied = true},
                                         Case{.recompute = workload::Recompute::kFull}));

long long parameters_of_all_stages(const workload::ModelShape& model,
                                   const workload::Strategy& strategy) {
  long long total = 0;
  for (int pp = 0; pp < strategy.pp; ++pp) {
    for (const ParameterSpec& spec : stage_parameters(model, strategy, {.pp = pp})) {
      if (!spec.second_copy) total += spec.rows * std::max<std::int64_t>(spec.columns, 1);
    }
  }
  return total;
}

TEST(StageParameters, HoldTheWholeModelOnceWhateverTheForm) {
  workload::ModelShape model = test::tiny_job().model;
  for (const bool tied : {false, true}) {
    model.tied_embeddings = tied;
    for (const workload::Strategy& strategy :
         {workload::Strategy{}, workload::Strategy{.pp = 2}, workload::Strategy{.pp = 4},
          workload::Strategy{.pp = 2, .stage_layers = {3, 1}}}) {
      EXPECT_EQ(parameters_of_all_stages(model, strategy), workload::total_parameters(model));
    }
  }
}

TEST(MakeParameters, CutsTheSameWholeForEveryRankOfAGroup) {
  const workload::ModelShape model = test::tiny_job().model;
  const workload::Strategy strategy{.tp = 2};
  const auto specs = stage_parameters(model, strategy, {});
  const Parameters whole = make_parameters(specs, {.seed = 5});
  const Parameters part = make_parameters(specs, {.tp_size = 2, .tp_rank = 1, .seed = 5});
  EXPECT_TRUE(
      part["block0.qkv.weight"].value.equal(whole["block0.qkv.weight"].value.narrow(0, 48, 48)));
  EXPECT_TRUE(
      part["block3.down.weight"].value.equal(whole["block3.down.weight"].value.narrow(1, 32, 32)));
  EXPECT_TRUE(part["block1.proj.bias"].value.equal(whole["block1.proj.bias"].value));
  EXPECT_FALSE(whole["block0.up.weight"].value.equal(whole["block1.up.weight"].value));
}

}  // namespace
}  // namespace regatta::train
