#include "regatta/model/workload/onnx_model.h"

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/test_files.h"
#include "regatta/model/workload/job.h"

namespace regatta::workload {
namespace {

using testing::HasSubstr;

Result<ModelShape> model_of_bytes(const std::string& text) {
  google::protobuf::io::ArrayInputStream bytes(text.data(), static_cast<int>(text.size()));
  REGATTA_TRY(graph, read_onnx_graph(bytes, static_cast<long long>(text.size()), "model.onnx"));
  return model_of_graph(graph, "model.onnx");
}

// Files that torch exports now, in a folder that goes with the test.
class ExportedModels : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // False where no Python with torch is found.
  bool write(const std::string& names) {
    std::filesystem::create_directories(folder_);
    for (const char* python : {"python3", "/usr/bin/python3"}) {
      const std::string command = std::string(python) + " " + REGATTA_TESTDATA +
                                  "/onnx_models.py " + folder_ + " " + names + " >/dev/null 2>&1";
      if (std::system(command.c_str()) == 0) return true;  // NOLINT(concurrency-mt-unsafe)
    }
    return false;
  }
  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_ = testing::TempDir() + "regatta-onnx-" + std::to_string(::getpid());
};

TEST_F(ExportedModels, HaveTheShapesTheyWereMadeOf) {
  if (!write("")) GTEST_SKIP() << "no Python with torch 1.13 or later that can export";
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder())) {
    if (entry.path().extension() != ".onnx") continue;
    ++files;
    const auto model = model_of_bytes(read_test_file(entry.path()));
    ASSERT_TRUE(model.has_value()) << entry.path() << ": " << model.error().message;
    auto made = entry.path();
    EXPECT_EQ(model_to_json(*model),
              nlohmann::json::parse(read_test_file(made.replace_extension(".json"))))
        << entry.path();
  }
  EXPECT_GE(files, 16);
}

TEST_F(ExportedModels, AreRefusedOrCountableWhenTheyAreDamaged) {
  if (!write("llama_one_key")) GTEST_SKIP() << "no Python with torch 1.13 or later that can export";
  const std::string whole = read_test_file(folder() + "/llama_one_key_dynamic.onnx");
  std::mt19937 random(1);
  for (std::size_t length = 0; length < whole.size(); length += 1 + random() % 997) {
    const auto cut = model_of_bytes(whole.substr(0, length));
    ASSERT_FALSE(cut.has_value()) << length;
    EXPECT_THAT(cut.error().message, HasSubstr("model.onnx: "));
  }
  for (int i = 0; i < 500; ++i) {
    std::string damaged = whole;
    for (int k = 0; k < 8; ++k)
      damaged[random() % 60'000] = static_cast<char>(random());  // among the operators
    const auto model = model_of_bytes(damaged);
    if (model) {
      EXPECT_GT(layer_parameters(*model), 0);
    }
  }
}

// One block after the other, written by hand.
class Graph {
 public:
  explicit Graph(int hidden) : hidden_(hidden) {
    graph_.inputs.push_back({"ids", {1, 16}});
    weight("table", {100, hidden});
    add("Gather", {"table", "ids"}, "x");
  }

  // Rows of `row` times a weight.
  std::string product(const std::string& row, int in, int out) {
    const std::string name = "w" + std::to_string(++count_);
    weight(name, {in, out});
    return add("MatMul", {row, name}, "p" + std::to_string(count_));
  }
  std::string attention(const std::string& row, int width) {
    std::vector<std::string> parts;
    for (int i = 0; i < 3; ++i) {
      const std::string target = "t" + std::to_string(++count_);
      graph_.tensors[target] = {.dims = {4}, .numbers = {1, 16, width / 8, 8}};
      parts.push_back(add("Reshape", {product(row, hidden_, width), target}, "r" + target));
    }
    const std::string scores = add("MatMul", {parts[0], parts[1]}, "s" + std::to_string(++count_));
    const std::string soft = add("Softmax", {scores}, "f" + std::to_string(count_));
    const std::string context = add("MatMul", {soft, parts[2]}, "c" + std::to_string(count_));
    return product(context, width, hidden_);
  }
  std::string block(const std::string& row, int width, int ffn, int products = 2) {
    const std::string mean = add("ReduceMean", {row}, "m" + std::to_string(++count_));
    std::string next = attention(add("Sub", {row, mean}, "n" + std::to_string(count_)), width);
    next = product(next, hidden_, ffn);
    for (int i = 2; i < products; ++i)
      next = product(next, ffn, ffn);
    return product(next, ffn, hidden_);
  }
  std::string add(const std::string& op, std::vector<std::string> inputs, std::string output) {
    graph_.nodes.push_back({.op = op, .inputs = std::move(inputs), .outputs = {output}});
    return output;
  }
  void weight(const std::string& name, std::vector<long long> dims) {
    graph_.tensors[name] = {.dims = std::move(dims)};
  }
  std::string refusal() const {
    const auto model = model_of_graph(graph_, "model.onnx");
    return model ? "none" : model.error().message;
  }
  const OnnxGraph& get() const { return graph_; }

 private:
  int hidden_;
  int count_ = 0;
  OnnxGraph graph_;
};

TEST(ModelOfGraph, ReadsBlocksWithoutAnOutputLayer) {
  Graph graph(32);
  graph.block(graph.block("x", 32, 64), 32, 64);
  const auto model = model_of_graph(graph.get(), "model.onnx");
  ASSERT_TRUE(model.has_value()) << model.error().message;
  EXPECT_EQ(model->kind, ModelKind::kEncoder);
  EXPECT_EQ(model->layers, 2);
  EXPECT_EQ(model->heads, 4);
  EXPECT_EQ(model->ffn_hidden, 64);
  EXPECT_EQ(model->vocab, 100);
  EXPECT_EQ(model->seq, 16);
  EXPECT_TRUE(model->tied_embeddings);
}

TEST(ModelOfGraph, SeesThatOneTensorServesBothEnds) {
  Graph graph(32);
  const std::string last = graph.block("x", 32, 64);
  graph.add("Transpose", {"table"}, "turned");
  graph.add("MatMul", {last, "turned"}, "logits");
  EXPECT_TRUE(model_of_graph(graph.get(), "model.onnx")->tied_embeddings);
}

TEST(ModelOfGraph, SaysWhatItFoundInsteadOfEqualBlocks) {
  const std::string start = "model.onnx: no stack of equal transformer blocks: ";
  Graph mlp(32);
  mlp.product(mlp.product("x", 32, 64), 64, 32);
  EXPECT_EQ(mlp.refusal(), start +
                               "2 products by weights and no Softmax between two products of "
                               "activations were found; write the sizes out");
  Graph deep(32);
  deep.block(deep.block("x", 32, 64, 4), 32, 64, 4);
  EXPECT_EQ(deep.refusal(), start +
                                "2 blocks and 8 products by weights beside attention were "
                                "found, where an MLP has 2 and a gated one 3; write the sizes "
                                "out");
  Graph unequal(32);
  unequal.block(unequal.block("x", 32, 64), 32, 128);
  EXPECT_EQ(unequal.refusal(), start + "MLP 2 of 2 differs from the first; write the sizes out");
  Graph narrow(32);
  narrow.block(narrow.block("x", 32, 64), 16, 64);
  EXPECT_EQ(narrow.refusal(),
            start + "attention 2 of 2 differs from the first; write the sizes out");
}

TEST(ModelOfGraph, SurvivesRings) {
  Graph graph(32);
  graph.add("Identity", {"b"}, "a");
  graph.add("Identity", {"a"}, "b");
  graph.block("a", 32, 64);
  EXPECT_EQ(graph.refusal(), "none");
  EXPECT_FALSE(model_of_graph({}, "model.onnx").has_value());
}

TEST(ReadOnnxGraph, RefusesWhatIsNoOnnxFile) {
  EXPECT_EQ(model_of_bytes("hello").error().message,
            "model.onnx: no ONNX file, or cut off; export the model again");
  EXPECT_EQ(model_of_bytes("").error().message,
            "model.onnx: holds no operators; give a model exported as ONNX");
  google::protobuf::io::ArrayInputStream bytes("", 0);
  EXPECT_EQ(read_onnx_graph(bytes, 3LL << 30, "model.onnx").error().message,
            "model.onnx: larger than 2 GiB, which no ONNX file may be; export it with its weights "
            "in files beside it");
}

}  // namespace
}  // namespace regatta::workload
