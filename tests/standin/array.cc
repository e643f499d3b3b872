#include "tests/standin/array.h"

#include <algorithm>
#include <set>

#include "tests/standin/api.h"

using namespace regatta::standin;

namespace regatta::standin {
namespace {

std::set<CUarray>& arrays() {
  static auto* const all = new std::set<CUarray>;
  return *all;
}
std::set<CUmipmappedArray>& mipmapped_arrays() {
  static auto* const all = new std::set<CUmipmappedArray>;
  return *all;
}

// Bytes of one channel; 0: a format that is not known here.
std::uint64_t format_bytes(int format) {
  switch (format) {
    case 0x01:  // unsigned of 8 bits
    case 0x08:  // signed of 8 bits
      return 1;
    case 0x02:
    case 0x09:
    case 0x10:  // half
      return 2;
    case 0x03:
    case 0x0a:
    case 0x20:  // float
      return 4;
    default:
      return 0;
  }
}

// A GPU's limits are some 16 to 131 thousand.
constexpr std::size_t kLongestSide = 131'072;

CUresult check_shape(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const bool is_right =
      shape.Width > 0 && format_bytes(shape.Format) > 0 &&
      (shape.NumChannels == 1 || shape.NumChannels == 2 || shape.NumChannels == 4) &&
      (shape.Depth == 0 || shape.Height > 0 || (shape.Flags & 1U) != 0) &&
      std::max({shape.Width, shape.Height, shape.Depth}) <= kLongestSide;
  return is_right ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

std::uint64_t pitch_of(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return shape.Width * format_bytes(shape.Format) * shape.NumChannels;
}

std::uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return pitch_of(shape) * std::max<std::uint64_t>(1, shape.Height) *
         std::max<std::uint64_t>(1, shape.Depth);
}

// Arrays lie in blocks of their own.
CUresult allocate(CUcontext context, std::uint64_t bytes, CUdeviceptr* address) {
  const std::uint64_t whole = (bytes + Arena::kBlock - 1) / Arena::kBlock * Arena::kBlock;
  const CUresult result = allocate_device(context, whole, address);
  if (result == CUDA_SUCCESS) process().regions.at(*address).kind = RegionKind::kArray;
  return result;
}

CUarray make_array(CUcontext context, const CUDA_ARRAY3D_DESCRIPTOR& shape, CUdeviceptr address,
                   CUmipmappedArray whole) {
  auto* const array = new CUarray_st{.context = context,
                                     .shape = shape,
                                     .address = address,
                                     .pitch = pitch_of(shape),
                                     .whole = whole};
  arrays().insert(array);
  return array;
}

void drop_array(CUarray array) {
  const auto at = process().regions.find(array->address);
  if (array->whole == nullptr && at != process().regions.end()) free_region(at);
  arrays().erase(array);
  delete array;
}

void drop_levels(CUmipmappedArray array) {
  const auto at = process().regions.find(array->levels.front()->address);
  for (const CUarray level : array->levels)
    drop_array(level);
  if (at != process().regions.end()) free_region(at);
  mipmapped_arrays().erase(array);
  delete array;
}

// More levels than halving the sides gives are as many as it gives. Layers stay as many.
std::vector<CUDA_ARRAY3D_DESCRIPTOR> shapes_of_levels(CUDA_ARRAY3D_DESCRIPTOR shape,
                                                      unsigned levels) {
  std::vector<CUDA_ARRAY3D_DESCRIPTOR> shapes;
  const bool is_layered = (shape.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  const auto halve = [](std::size_t side) { return side > 1 ? side / 2 : side; };
  while (shapes.size() < levels) {
    shapes.push_back(shape);
    if (shape.Width == 1 && shape.Height <= 1 && (is_layered || shape.Depth <= 1)) break;
    shape.Width = halve(shape.Width);
    shape.Height = halve(shape.Height);
    if (!is_layered) shape.Depth = halve(shape.Depth);
  }
  return shapes;
}

CUresult begin(CUcontext* context, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  CUresult result = current_context(context);
  if (result == CUDA_SUCCESS) result = check_shape(shape);
  return result == CUDA_SUCCESS ? check_no_capture() : result;
}

CUresult create(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  CUdeviceptr address = 0;
  CUresult result = begin(&context, shape);
  if (result == CUDA_SUCCESS) result = allocate(context, bytes_of(shape), &address);
  if (result == CUDA_SUCCESS) *array = make_array(context, shape, address, nullptr);
  return result;
}

// Work may still use what is destroyed.
CUresult wait_for(CUcontext context) {
  {
    const std::lock_guard lock(process().mutex);
    if (const CUresult result = check_no_capture(); result != CUDA_SUCCESS) return result;
  }
  return wait_context(context);
}

}  // namespace

bool is_array(CUarray array) {
  return arrays().contains(array);
}

void drop_arrays(CUcontext context) {
  const std::vector<CUmipmappedArray> wholes(mipmapped_arrays().begin(), mipmapped_arrays().end());
  for (const CUmipmappedArray whole : wholes)
    if (whole->levels.front()->context == context) drop_levels(whole);
  const std::vector<CUarray> all(arrays().begin(), arrays().end());
  for (const CUarray array : all)
    if (array->context == context) drop_array(array);
}

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* shape) {
  if (array == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(array, {shape->Width, shape->Height, 0, shape->Format, shape->NumChannels, 0});
}

CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* shape) {
  if (array == nullptr || shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return create(array, *shape);
}

CUresult cuArrayDestroy(CUarray array) {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(process().mutex);
    if (!is_array(array) || array->whole != nullptr) return CUDA_ERROR_INVALID_HANDLE;
    context = array->context;
  }
  if (const CUresult result = wait_for(context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(process().mutex);
  if (!is_array(array)) return CUDA_ERROR_INVALID_HANDLE;
  drop_array(array);
  return CUDA_SUCCESS;
}

CUresult cuArrayGetDescriptor_v2(CUDA_ARRAY_DESCRIPTOR* shape, CUarray array) {
  const std::lock_guard lock(process().mutex);
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_array(array)) return CUDA_ERROR_INVALID_HANDLE;
  const CUDA_ARRAY3D_DESCRIPTOR& own = array->shape;
  *shape = {own.Width, own.Height, own.Format, own.NumChannels};
  return CUDA_SUCCESS;
}

CUresult cuArray3DGetDescriptor_v2(CUDA_ARRAY3D_DESCRIPTOR* shape, CUarray array) {
  const std::lock_guard lock(process().mutex);
  if (shape == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!is_array(array)) return CUDA_ERROR_INVALID_HANDLE;
  *shape = array->shape;
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayCreate(CUmipmappedArray* whole, const CUDA_ARRAY3D_DESCRIPTOR* wanted,
                                unsigned levels) {
  if (whole == nullptr || wanted == nullptr || levels == 0) return CUDA_ERROR_INVALID_VALUE;
  const std::lock_guard lock(process().mutex);
  CUcontext context = nullptr;
  if (const CUresult result = begin(&context, *wanted); result != CUDA_SUCCESS) return result;
  const auto shapes = shapes_of_levels(*wanted, levels);
  std::uint64_t bytes = 0;
  for (const CUDA_ARRAY3D_DESCRIPTOR& shape : shapes)
    bytes += bytes_of(shape);
  CUdeviceptr address = 0;
  if (const CUresult result = allocate(context, bytes, &address); result != CUDA_SUCCESS)
    return result;
  auto* const made = new CUmipmappedArray_st;
  for (const CUDA_ARRAY3D_DESCRIPTOR& shape : shapes) {
    made->levels.push_back(make_array(context, shape, address, made));
    address += bytes_of(shape);
  }
  mipmapped_arrays().insert(made);
  *whole = made;
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayGetLevel(CUarray* array, CUmipmappedArray whole, unsigned level) {
  const std::lock_guard lock(process().mutex);
  if (array == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!mipmapped_arrays().contains(whole)) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= whole->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *array = whole->levels[level];
  return CUDA_SUCCESS;
}

CUresult cuMipmappedArrayDestroy(CUmipmappedArray whole) {
  CUcontext context = nullptr;
  {
    const std::lock_guard lock(process().mutex);
    if (!mipmapped_arrays().contains(whole)) return CUDA_ERROR_INVALID_HANDLE;
    context = whole->levels.front()->context;
  }
  if (const CUresult result = wait_for(context); result != CUDA_SUCCESS) return result;
  const std::lock_guard lock(process().mutex);
  if (!mipmapped_arrays().contains(whole)) return CUDA_ERROR_INVALID_HANDLE;
  drop_levels(whole);
  return CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
