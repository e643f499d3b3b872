#include "regatta/platform/store/internal/shipped_log.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include <fmt/format.h>

#include "regatta/platform/store/internal/crc32c.h"

namespace regatta::store {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::string_view kMagic = "RGL1";
constexpr std::size_t kHeaderSize = 16;  // magic, length, checksum of both, checksum of the body
constexpr std::uint32_t kRemoved = 0xffffffff;
// The body has at least the previous revision, the number of changes, and for each its numbers.
constexpr std::size_t kChangeLeast = 16;

template <typename Number>
void append_number(std::string& bytes, std::type_identity_t<Number> number) {
  char text[sizeof(Number)];
  std::memcpy(text, &number, sizeof(number));
  bytes.append(text, sizeof(number));
}

// Takes numbers and texts from the front of bytes; all fails after the first that is too long.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <typename Number>
  Number number() {
    Number number{};
    const std::string_view text = take(sizeof(number));
    if (is_good_) std::memcpy(&number, text.data(), sizeof(number));
    return number;
  }
  std::string_view take(std::size_t size) {
    if (size > bytes_.size()) is_good_ = false;
    if (!is_good_) return {};
    const std::string_view text = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return text;
  }
  std::size_t left() const { return bytes_.size(); }
  bool is_good() const { return is_good_; }

 private:
  std::string_view bytes_;
  bool is_good_ = true;
};

// The body of the commit that begins at `text`, when both its checksums are right.
std::optional<std::string_view> body_at(std::string_view text) {
  if (text.size() < kHeaderSize || !text.starts_with(kMagic)) return std::nullopt;
  ByteReader header(text.substr(kMagic.size()));
  const auto length = header.number<std::uint32_t>();
  const auto header_checksum = header.number<std::uint32_t>();
  const auto body_checksum = header.number<std::uint32_t>();
  if (crc32c(text.substr(0, 8)) != header_checksum) return std::nullopt;
  if (length > text.size() - kHeaderSize) return std::nullopt;
  const std::string_view body = text.substr(kHeaderSize, length);
  if (crc32c(body) != body_checksum) return std::nullopt;
  return body;
}

std::optional<ShippedCommit> decode_body(std::string_view body) {
  ByteReader reader(body);
  ShippedCommit commit{reader.number<Revision>(), {}};
  const auto count = reader.number<std::uint32_t>();
  if (count > reader.left() / kChangeLeast) return std::nullopt;
  commit.changes.reserve(count);
  Revision last = commit.previous;
  for (std::uint32_t i = 0; i < count; ++i) {
    Change change;
    change.revision = reader.number<Revision>();
    const auto key_size = reader.number<std::uint32_t>();
    const auto value_size = reader.number<std::uint32_t>();
    change.key = reader.take(key_size);
    if (value_size != kRemoved) change.value = std::string(reader.take(value_size));
    const bool is_key = !change.key.empty() && change.key.size() <= kKeyMost &&
                        change.key.find('\0') == change.key.npos;
    if (!reader.is_good() || !is_key || change.revision <= last) return std::nullopt;
    last = change.revision;
    commit.changes.push_back(std::move(change));
  }
  if (count == 0 || reader.left() != 0 || commit.previous < 0) return std::nullopt;
  return commit;
}

// Whether a whole commit begins anywhere in `text`.
bool has_commit(std::string_view text) {
  for (std::size_t at = text.find(kMagic); at != text.npos; at = text.find(kMagic, at + 1))
    if (body_at(text.substr(at))) return true;
  return false;
}

}  // namespace

std::string encode_commit(Revision previous, std::span<const Change> changes) {
  std::string body;
  append_number<Revision>(body, previous);
  append_number<std::uint32_t>(body, static_cast<std::uint32_t>(changes.size()));
  for (const Change& change : changes) {
    append_number<Revision>(body, change.revision);
    append_number<std::uint32_t>(body, static_cast<std::uint32_t>(change.key.size()));
    append_number<std::uint32_t>(
        body, change.value ? static_cast<std::uint32_t>(change.value->size()) : kRemoved);
    body += change.key;
    if (change.value) body += *change.value;
  }
  std::string bytes(kMagic);
  append_number<std::uint32_t>(bytes, static_cast<std::uint32_t>(body.size()));
  append_number<std::uint32_t>(bytes, crc32c(bytes));
  append_number<std::uint32_t>(bytes, crc32c(body));
  return bytes + body;
}

Result<std::optional<ShippedCommit>> ShippedLogReader::next() {
  const std::string_view rest = text_.substr(position_);
  if (rest.empty() || is_cut_) return std::optional<ShippedCommit>();
  const std::optional<std::string_view> body = body_at(rest);
  std::optional<ShippedCommit> commit;
  if (body) commit = decode_body(*body);
  if (commit) {
    position_ += kHeaderSize + body->size();
    return commit;
  }
  // A commit with right checksums and wrong content was never written by us, wherever it stands.
  if (!body && !has_commit(rest.substr(1))) {
    is_cut_ = true;
    return std::optional<ShippedCommit>();
  }
  return Error{
      Code::kInvalidInput,
      fmt::format("{}: the commit at byte {} is damaged, and others follow it; restore from "
                  "another copy",
                  name_, position_)};
}

}  // namespace regatta::store
