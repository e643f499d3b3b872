#include "regatta/base/http/static_files.h"

#include <array>
#include <cctype>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/os/file.h"

namespace regatta::http {
namespace {

constexpr std::size_t kBytesMax = 64 << 20;
constexpr std::size_t kFilesMax = 10'000;
constexpr std::string_view kIndex = "/index.html";
constexpr std::string_view kAssets = "/assets/";
constexpr std::size_t kHashLetters = 8;

constexpr std::array<std::pair<std::string_view, std::string_view>, 14> kTypes = {{
    {".html", "text/html; charset=utf-8"},
    {".js", "text/javascript; charset=utf-8"},
    {".mjs", "text/javascript; charset=utf-8"},
    {".css", "text/css; charset=utf-8"},
    {".json", "application/json"},
    {".map", "application/json"},
    {".svg", "image/svg+xml"},
    {".png", "image/png"},
    {".ico", "image/x-icon"},
    {".woff2", "font/woff2"},
    {".txt", "text/plain; charset=utf-8"},
    {".webp", "image/webp"},
    {".webmanifest", "application/manifest+json"},
    {".wasm", "application/wasm"},
}};

std::string type_of(std::string_view path) {
  for (const auto& [suffix, type] : kTypes)
    if (path.ends_with(suffix)) return std::string(type);
  return "application/octet-stream";
}

// NAME-HASH8.SUFFIX, as bundlers name what they build.
bool has_content_hash(std::string_view path) {
  if (!path.starts_with(kAssets)) return false;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot < kHashLetters + 2) return false;
  for (const char letter : name.substr(dot - kHashLetters, kHashLetters))
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0 && letter != '_' && letter != '-')
      return false;
  return name[dot - kHashLetters - 1] == '-';
}

bool is_weight_zero(std::string_view parameters) {
  const std::size_t at = parameters.find("q=");
  if (at == std::string_view::npos) return false;
  std::string_view value = parameters.substr(at + 2);
  value = value.substr(0, value.find(';'));
  return trim(value).find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool takes_encoding(std::string_view accepted, std::string_view coding) {
  while (!accepted.empty()) {
    const std::size_t comma = std::min(accepted.find(','), accepted.size());
    const std::string_view item = accepted.substr(0, comma);
    accepted.remove_prefix(std::min(comma + 1, accepted.size()));
    const std::size_t semicolon = std::min(item.find(';'), item.size());
    if (is_same_token(trim(item.substr(0, semicolon)), coding))
      return !is_weight_zero(item.substr(semicolon));
  }
  return false;
}

Result<StaticFiles> StaticFiles::load(const std::string& folder) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> contents;
  std::size_t bytes = 0;
  std::error_code error;
  fs::recursive_directory_iterator end;
  for (fs::recursive_directory_iterator at(folder, error); !error && at != end;
       at.increment(error)) {
    std::error_code ignored;
    if (!fs::is_regular_file(at->symlink_status(ignored))) continue;
    const std::string path = at->path().string();
    REGATTA_TRY(content, os::read_file(path, kBytesMax));
    bytes += content.size();
    if (bytes > kBytesMax || contents.size() == kFilesMax)
      return Error{Code::kExhausted,
                   fmt::format("{}: it holds more than {} MiB or {} files, which no page needs; "
                               "name the folder that the build of web/ has written",
                               folder, kBytesMax >> 20, kFilesMax)};
    contents["/" + fs::relative(at->path(), folder, ignored).generic_string()] = std::move(content);
  }
  if (error || !contents.contains(std::string(kIndex)))
    return Error{Code::kNotFound, folder + ": it holds no index.html"};
  StaticFiles made;
  for (const auto& entry : contents) {
    const std::string& path = entry.first;
    const std::string& content = entry.second;
    const std::string whole = path.substr(0, path.rfind('.'));
    if ((path.ends_with(".gz") || path.ends_with(".br")) && contents.contains(whole)) continue;
    const auto compressed = [&](const char* suffix) {
      const auto found = contents.find(path + suffix);
      return found == contents.end() ? std::string() : found->second;
    };
    made.files_[path] = {.type = type_of(path),
                         .plain = content,
                         .gzip = compressed(".gz"),
                         .brotli = compressed(".br"),
                         .tag = fmt::format("{:016x}", fnv1a(content))};
  }
  return made;
}

std::optional<Response> StaticFiles::respond(const Request& request) const {
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  auto found = files_.find(request.path == "/" ? std::string(kIndex) : request.path);
  if (found == files_.end()) {
    const bool is_page = request.header("Accept").find("text/html") != std::string_view::npos;
    if (!is_page || request.path.starts_with(kAssets)) return std::nullopt;
    found = files_.find(std::string(kIndex));
  }
  const File& file = found->second;
  const std::string_view accepted = request.header("Accept-Encoding");
  Response response;
  response.content_type = file.type;
  std::string tag = file.tag;
  if (!file.brotli.empty() && takes_encoding(accepted, "br")) {
    response.headers.emplace_back("Content-Encoding", "br");
    response.body = file.brotli;
    tag += "-br";
  } else if (!file.gzip.empty() && takes_encoding(accepted, "gzip")) {
    response.headers.emplace_back("Content-Encoding", "gzip");
    response.body = file.gzip;
    tag += "-gz";
  } else {
    response.body = file.plain;
  }
  tag = "\"" + tag + "\"";
  response.headers.emplace_back("Vary", "Accept-Encoding");
  response.headers.emplace_back("ETag", tag);
  response.headers.emplace_back("Cache-Control", has_content_hash(found->first)
                                                     ? "public, max-age=31536000, immutable"
                                                     : "no-cache");
  if (has_token(request.header("If-None-Match"), tag)) {
    response.status = 304;
    response.body.clear();
  }
  return response;
}

}  // namespace regatta::http
