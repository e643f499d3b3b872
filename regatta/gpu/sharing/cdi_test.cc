#include "regatta/gpu/sharing/cdi.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/yaml_map.h"

namespace regatta::sharing {
namespace {

using json = nlohmann::ordered_json;
using testing::HasSubstr;

const CdiOptions kOptions{.name = "small",
                          .socket = "/run/regatta-gpu/socket",
                          .library = "/usr/lib/regatta/libregatta_gpu.so",
                          .preload = "/usr/lib/regatta/ld.so.preload",
                          .program = "/usr/bin/regatta",
                          .limits = {"--memory", "4GiB"}};

// The same value, read back from YAML; every scalar as text.
json from_yaml(const YamlNode& node) {
  if (node.kind == YamlKind::kScalar) return node.scalar;
  json value;
  for (const YamlNode& item : node.items)
    value.push_back(from_yaml(item));
  for (const YamlEntry& entry : node.entries)
    value[entry.key] = from_yaml(entry.value);
  return value;
}

json as_texts(const json& value) {
  if (!value.is_structured()) return value.is_string() ? value : json(value.dump());
  json texts;
  for (const auto& [key, one] : value.items()) {
    if (value.is_array())
      texts.push_back(as_texts(one));
    else
      texts[key] = as_texts(one);
  }
  return texts;
}

TEST(Cdi, MountsTheSocketsFolderTheLibraryAndWhatLoadsIt) {
  const json spec = cdi_spec(kOptions);
  EXPECT_EQ(spec["kind"], "regatta.gpu/slice");
  const json& device = spec["devices"][0];
  EXPECT_EQ(device["name"], "small");
  const json& edits = device["containerEdits"];
  EXPECT_FALSE(edits.contains("env"));
  ASSERT_EQ(edits["mounts"].size(), 3U);
  EXPECT_EQ(edits["mounts"][0]["hostPath"], "/run/regatta-gpu");
  EXPECT_EQ(edits["mounts"][0]["containerPath"], "/run/regatta-gpu");
  EXPECT_EQ(edits["mounts"][1]["containerPath"], "/usr/lib/regatta/libregatta_gpu.so");
  EXPECT_EQ(edits["mounts"][2]["containerPath"], "/etc/ld.so.preload");
  for (const json& mount : edits["mounts"])
    EXPECT_THAT(mount["options"].dump(), HasSubstr(R"("bind","ro")"));
  EXPECT_EQ(edits["hooks"][0]["hookName"], "createRuntime");
  EXPECT_EQ(
      edits["hooks"][0]["args"].dump(),
      R"(["regatta","gpu","oci-hook","--socket","/run/regatta-gpu/socket","--memory","4GiB"])");
  EXPECT_EQ(edits["hooks"][1]["hookName"], "poststop");
  EXPECT_EQ(edits["hooks"][1]["args"].back(), "--leave");
}

TEST(Cdi, PreloadsByTheEnvironmentWhereThatIsWanted) {
  CdiOptions options = kOptions;
  options.preload.clear();
  const json edits = cdi_spec(options)["devices"][0]["containerEdits"];
  EXPECT_EQ(edits["env"].dump(), R"(["LD_PRELOAD=/usr/lib/regatta/libregatta_gpu.so"])");
  EXPECT_EQ(edits["mounts"].size(), 2U);
}

TEST(Cdi, IsTheSameInYaml) {
  CdiOptions options = kOptions;
  options.name = "a: 'b' #c";  // no name that is allowed, and yet no other text in YAML
  const json spec = cdi_spec(options);
  const std::string text = yaml_text(spec);
  const auto yaml = parse_yaml(text, "spec");
  ASSERT_TRUE(yaml) << yaml.error().message << "\n" << text;
  EXPECT_EQ(from_yaml(*yaml).dump(2), as_texts(spec).dump(2));
}

}  // namespace
}  // namespace regatta::sharing
