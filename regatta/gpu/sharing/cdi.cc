#include "regatta/gpu/sharing/cdi.h"

#include <algorithm>
#include <filesystem>

#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {
namespace {

using nlohmann::ordered_json;

// The oldest version with all features used (the type of a mount), which readers of any later
// version accept: podman 4.3 of Debian 12 ignores 0.6.0.
constexpr const char* kCdiVersion = "0.4.0";
constexpr int kHookTimeoutS =
    20;  // the daemon answers in milliseconds, or the hook gives up after 10 s

std::string folder_of(const std::string& path) {
  return std::filesystem::path(path).parent_path().string();
}

ordered_json bind_mount(const std::string& host, const std::string& container, bool has_programs) {
  ordered_json options = ordered_json::array({"bind", "ro", "nosuid", "nodev"});
  if (!has_programs) options.push_back("noexec");
  return {{"hostPath", host}, {"containerPath", container}, {"type", "none"}, {"options", options}};
}

ordered_json cdi_hook(const CdiOptions& options, const char* when,
                      const std::vector<std::string>& words) {
  ordered_json arguments =
      ordered_json::array({"regatta", "gpu", "oci-hook", "--socket", options.socket});
  for (const std::string& word : words)
    arguments.push_back(word);
  return {{"hookName", when},
          {"path", options.program},
          {"args", arguments},
          {"timeout", kHookTimeoutS}};
}

void write(std::string& text, const ordered_json& value, const std::string& indent);

// `head` is the key or the dash in front of the value.
void write_entry(std::string& text, const std::string& head, const ordered_json& value,
                 const std::string& indent) {
  const bool is_flat = std::none_of(value.begin(), value.end(),
                                    [](const ordered_json& one) { return one.is_structured(); });
  if (!value.is_structured() || (value.is_array() && is_flat)) {
    text += head + " " + value.dump() + "\n";  // JSON's scalars and flat lists are YAML's
    return;
  }
  text += head + "\n";
  write(text, value, indent + "  ");
}

void write(std::string& text, const ordered_json& value, const std::string& indent) {
  if (value.is_object()) {
    for (const auto& [key, one] : value.items())
      write_entry(text, indent + key + ":", one, indent);
    return;
  }
  for (const ordered_json& one : value) {
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

ordered_json cdi_spec(const CdiOptions& options) {
  // The folder instead of the socket, which is another file after each start of the daemon.
  ordered_json mounts =
      ordered_json::array({bind_mount(folder_of(options.socket), folder_of(kDefaultSocket), false),
                           bind_mount(options.library, options.library, true)});
  ordered_json edits;
  if (options.preload.empty()) {
    edits["env"] = ordered_json::array({"LD_PRELOAD=" + options.library});
  } else {
    mounts.push_back(bind_mount(options.preload, "/etc/ld.so.preload", false));
  }
  edits["mounts"] = mounts;
  edits["hooks"] = ordered_json::array({cdi_hook(options, "createRuntime", options.limits),
                                        cdi_hook(options, "poststop", {"--leave"})});
  return {{"cdiVersion", kCdiVersion},
          {"kind", kCdiKind},
          {"devices",
           ordered_json::array({ordered_json{{"name", options.name}, {"containerEdits", edits}}})}};
}

std::string yaml_text(const ordered_json& value) {
  std::string text;
  write(text, value, "");
  return text;
}

}  // namespace regatta::sharing
