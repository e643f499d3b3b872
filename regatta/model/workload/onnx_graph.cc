#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream.h>

#include "regatta/model/workload/onnx_model.h"

namespace regatta::workload {
namespace {

using google::protobuf::io::CodedInputStream;

constexpr int kNameMax = 4096;           // bytes
constexpr std::size_t kNumbersMax = 16;  // of a tensor whose content is kept, and of its dims
constexpr std::uint32_t kVarint = 0;
constexpr std::uint32_t kFixed64 = 1;
constexpr std::uint32_t kBytes = 2;
constexpr std::uint32_t kFixed32 = 5;

// Reads the fields of nested messages; the first thing that is wrong ends it all.
class Reader {
 public:
  Reader(CodedInputStream& input, long long size) : input_(input), size_(size) {}

  bool failed() const { return failed_; }

  // Calls visit(field, type) for each field of a message of `length` bytes; it must consume it.
  template <typename Visit>
  void message(int length, const Visit& visit) {
    const CodedInputStream::Limit limit = input_.PushLimit(length);
    while (!failed_ && input_.BytesUntilLimit() > 0) {
      const std::uint32_t tag = input_.ReadTag();
      if (tag >> 3 == 0)
        fail();
      else
        visit(tag >> 3, tag & 7);
    }
    input_.PopLimit(limit);
  }
  // The length of a nested message, text or packed list, within the file and the outer message.
  int length(std::uint32_t type) {
    std::uint32_t bytes = 0;
    if (type != kBytes || !input_.ReadVarint32(&bytes)) return fail();
    const long long end = static_cast<long long>(input_.CurrentPosition()) + bytes;
    const int left = input_.BytesUntilLimit();
    if (end > size_ || (left >= 0 && bytes > static_cast<std::uint32_t>(left))) return fail();
    return static_cast<int>(bytes);
  }
  std::string text(std::uint32_t type) {
    const int bytes = length(type);
    std::string value;
    if (bytes > kNameMax || !input_.ReadString(&value, bytes)) fail();
    return value;
  }
  long long number(std::uint32_t type) {
    std::uint64_t value = 0;
    if (type != kVarint || !input_.ReadVarint64(&value)) return fail();
    return static_cast<long long>(value);
  }
  // One number, or a packed list of them.
  void numbers(std::uint32_t type, std::vector<long long>& values) {
    if (type != kBytes) {
      values.push_back(number(type));
      return;
    }
    const CodedInputStream::Limit limit = input_.PushLimit(length(type));
    while (!failed_ && input_.BytesUntilLimit() > 0)
      values.push_back(number(kVarint));
    input_.PopLimit(limit);
  }
  // Eight bytes each, low byte first; those of a tensor that is not short are skipped.
  void raw_numbers(std::uint32_t type, std::vector<long long>& values) {
    const int bytes = length(type);
    std::string raw;
    if (static_cast<std::size_t>(bytes) > 8 * kNumbersMax ? !input_.Skip(bytes)
                                                          : !input_.ReadString(&raw, bytes))
      fail();
    for (std::size_t at = 0; at + 8 <= raw.size(); at += 8) {
      std::uint64_t value = 0;
      for (std::size_t i = 8; i-- > 0;)
        value = value << 8 | static_cast<unsigned char>(raw[at + i]);
      values.push_back(static_cast<long long>(value));
    }
  }
  void skip(std::uint32_t type) {
    std::uint64_t ignored = 0;
    bool good = true;
    if (type == kVarint)
      good = input_.ReadVarint64(&ignored);
    else if (type == kFixed64 || type == kFixed32)
      good = input_.Skip(type == kFixed64 ? 8 : 4);
    else
      good = input_.Skip(length(type));
    if (!good) fail();
  }
  int fail() {
    failed_ = true;
    return 0;
  }

 private:
  CodedInputStream& input_;
  long long size_;
  bool failed_ = false;
};

// A tensor's name, which constants leave empty, goes to `name`.
OnnxTensor read_tensor(Reader& reader, std::uint32_t type, std::string& name) {
  constexpr long long kInt64 = 7;  // TensorProto.DataType
  OnnxTensor tensor;
  long long data_type = 0;
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    if (field == 1 && tensor.dims.size() < kNumbersMax)
      reader.numbers(kind, tensor.dims);
    else if (field == 2)
      data_type = reader.number(kind);
    else if (field == 8)
      name = reader.text(kind);
    else if (field == 9)
      reader.raw_numbers(kind, tensor.numbers);
    else
      reader.skip(kind);
  });
  if (data_type != kInt64) tensor.numbers.clear();
  return tensor;
}

// An attribute that counts: the flag of a Gemm, the value of a Constant.
void read_attribute(Reader& reader, std::uint32_t type, OnnxNode& node, OnnxTensor& value) {
  std::string name;
  std::string ignored;
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    if (field == 1)
      name = reader.text(kind);
    else if (field == 3 && name == "transB")
      node.transposes_second = reader.number(kind) != 0;
    else if (field == 5 && name == "value")
      value = read_tensor(reader, kind, ignored);
    else
      reader.skip(kind);
  });
}

void read_node(Reader& reader, std::uint32_t type, OnnxGraph& graph) {
  OnnxNode node;
  OnnxTensor value;
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    if (field == 1)
      node.inputs.push_back(reader.text(kind));
    else if (field == 2)
      node.outputs.push_back(reader.text(kind));
    else if (field == 4)
      node.op = reader.text(kind);
    else if (field == 5)
      read_attribute(reader, kind, node, value);
    else
      reader.skip(kind);
  });
  if (node.op == "Constant" && !node.outputs.empty())
    graph.tensors[node.outputs.front()] = std::move(value);
  else
    graph.nodes.push_back(std::move(node));
}

long long read_dimension(Reader& reader, std::uint32_t type) {
  long long size = 0;
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    if (field == 1)
      size = reader.number(kind);
    else
      reader.skip(kind);
  });
  return size;
}

// Calls visit(type) for each field `wanted` of the message that comes next.
template <typename Visit>
void each(Reader& reader, std::uint32_t type, std::uint32_t wanted, const Visit& visit) {
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    if (field == wanted)
      visit(kind);
    else
      reader.skip(kind);
  });
}

// ValueInfoProto: name, type.tensor_type.shape.dim.
OnnxInput read_input(Reader& reader, std::uint32_t type) {
  OnnxInput input;
  const auto shape = [&](std::uint32_t kind) {
    each(reader, kind, 1, [&](std::uint32_t dim) {
      if (input.dims.size() < kNumbersMax)
        input.dims.push_back(read_dimension(reader, dim));
      else
        reader.skip(dim);
    });
  };
  const auto tensor_type = [&](std::uint32_t kind) { each(reader, kind, 2, shape); };
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    if (field == 1)
      input.name = reader.text(kind);
    else if (field == 2)
      each(reader, kind, 1, tensor_type);
    else
      reader.skip(kind);
  });
  return input;
}

void read_graph(Reader& reader, std::uint32_t type, OnnxGraph& graph) {
  reader.message(reader.length(type), [&](std::uint32_t field, std::uint32_t kind) {
    std::string name;
    if (field == 1) {
      read_node(reader, kind, graph);
    } else if (field == 5) {
      OnnxTensor tensor = read_tensor(reader, kind, name);
      graph.tensors[name] = std::move(tensor);
    } else if (field == 11) {
      graph.inputs.push_back(read_input(reader, kind));
    } else {
      reader.skip(kind);
    }
  });
}

}  // namespace

Result<OnnxGraph> read_onnx_graph(google::protobuf::io::ZeroCopyInputStream& bytes, long long size,
                                  const std::string& file) {
  const auto refuse = [&](const char* problem) {
    return Error{Code::kInvalidInput, file + ": " + problem};
  };
  if (size > std::numeric_limits<std::int32_t>::max()) {
    return refuse(
        "larger than 2 GiB, which no ONNX file may be; export it with its weights in "
        "files beside it");
  }
  CodedInputStream input(&bytes);
  Reader reader(input, size);
  OnnxGraph graph;
  reader.message(static_cast<int>(size), [&](std::uint32_t field, std::uint32_t type) {
    constexpr std::uint32_t kGraph = 7;
    if (field == kGraph)
      read_graph(reader, type, graph);
    else
      reader.skip(type);
  });
  if (reader.failed()) return refuse("no ONNX file, or cut off; export the model again");
  if (graph.nodes.empty()) return refuse("holds no operators; give a model exported as ONNX");
  return graph;
}

}  // namespace regatta::workload
