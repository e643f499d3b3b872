#include "regatta/gpu/sharing/cdi.h"

#include <algorithm>
#include <filesystem>

#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {
namespace {

using json = nlohmann::ordered_json;

// The least that has all that is used (the type of a mount), which readers of any later version
// take, too: podman 4.3 of Debian 12 passes over 0.6.0.
constexpr const char* kVersion = "0.4.0";
constexpr int kHookTimeoutS = 20;  // the daemon answers in milliseconds, or is given up after 10 s

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

json bind_mount(const std::string& host, const std::string& container, bool has_programs) {
  json options = json::array({"bind", "ro", "nosuid", "nodev"});
  if (!has_programs) options.push_back("noexec");
  return {{"hostPath", host}, {"containerPath", container}, {"type", "none"}, {"options", options}};
}

json hook(const CdiOptions& options, const char* when, const std::vector<std::string>& words) {
  json arguments = json::array({"regatta", "gpu", "oci-hook", "--socket", options.socket});
  for (const std::string& word : words)
    arguments.push_back(word);
  return {{"hookName", when},
          {"path", options.program},
          {"args", arguments},
          {"timeout", kHookTimeoutS}};
}

void write(std::string& text, const json& value, const std::string& indent);

// `head` is the key or the dash that the value stands behind.
void write_entry(std::string& text, const std::string& head, const json& value,
                 const std::string& indent) {
  const bool is_flat =
      std::none_of(value.begin(), value.end(), [](const json& one) { return one.is_structured(); });
  if (!value.is_structured() || (value.is_array() && is_flat)) {
    text += head + " " + value.dump() + "\n";  // JSON's scalars and flat lists are YAML's
    return;
  }
  text += head + "\n";
  write(text, value, indent + "  ");
}

void write(std::string& text, const json& value, const std::string& indent) {
  if (value.is_object()) {
    for (const auto& [key, one] : value.items())
      write_entry(text, indent + key + ":", one, indent);
    return;
  }
  for (const json& one : value) {
    std::string item;
    if (one.is_object()) {
      write(item, one, indent + "  ");
      item[indent.size()] = '-';  // before the first key
    } else {
      write_entry(item, indent + "-", one, indent);
    }
    text += item;
  }
}

}  // namespace

json cdi_spec(const CdiOptions& options) {
  // The folder and not the socket, which is another file after each start of the daemon.
  json mounts =
      json::array({bind_mount(folder_of(options.socket), folder_of(kDefaultSocket), false),
                   bind_mount(options.library, options.library, true)});
  json edits;
  if (options.preload.empty()) {
    edits["env"] = json::array({"LD_PRELOAD=" + options.library});
  } else {
    mounts.push_back(bind_mount(options.preload, "/etc/ld.so.preload", false));
  }
  edits["mounts"] = mounts;
  edits["hooks"] = json::array(
      {hook(options, "createRuntime", options.limits), hook(options, "poststop", {"--leave"})});
  return {{"cdiVersion", kVersion},
          {"kind", kCdiKind},
          {"devices", json::array({json{{"name", options.name}, {"containerEdits", edits}}})}};
}

std::string yaml_text(const json& value) {
  std::string text;
  write(text, value, "");
  return text;
}

}  // namespace regatta::sharing
