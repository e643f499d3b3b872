// The document, the table of routes and the list of keys that clients rely on say the same.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/platform/api/access.h"
#include "regatta/platform/api/internal/openapi_document.h"

namespace regatta::api {
namespace {

using testing::IsEmpty;

nlohmann::json document() {
  return nlohmann::json::parse(openapi_document());
}

std::string small(std::string_view method) {
  std::string text(method);
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return text;
}

// "get /v1/jobs" with its role.
std::map<std::string, std::string> roles_of_table() {
  std::map<std::string, std::string> roles;
  for (const Route& route : routes())
    roles[small(route.method) + " " + std::string(route.pattern)] =
        route.least ? enum_name(kAccessRoleNames, *route.least) : "none";
  return roles;
}

std::map<std::string, std::string> roles_of_document() {
  std::map<std::string, std::string> roles;
  const nlohmann::json paths = document().at("paths");
  for (const auto& [path, operations] : paths.items())
    for (const auto& [method, operation] : operations.items())
      roles[method + " " + path] = operation.at("x-role");
  return roles;
}

std::set<std::string> required_fields(const nlohmann::json& schemas) {
  std::set<std::string> fields;
  for (const auto& [name, schema] : schemas.items())
    for (const auto& key : schema.value("required", nlohmann::json::array()))
      fields.insert(name + "." + key.get<std::string>());
  return fields;
}

std::set<std::string> listed_fields() {
  std::ifstream file(REGATTA_TESTDATA "/required_fields.txt");
  std::set<std::string> fields;
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line.front() != '#') fields.insert(line);
  return fields;
}

std::set<std::string> missing_in(const std::set<std::string>& from,
                                 const std::set<std::string>& all) {
  std::set<std::string> missing;
  std::set_difference(from.begin(), from.end(), all.begin(), all.end(),
                      std::inserter(missing, missing.end()));
  return missing;
}

void collect_references(const nlohmann::json& node, std::set<std::string>& references) {
  if (node.is_object() && node.contains("$ref")) references.insert(node.at("$ref"));
  for (const auto& child : node)
    if (child.is_structured()) collect_references(child, references);
}

TEST(Openapi, HasEachRouteOfTheTableWithItsRoleAndNoOther) {
  EXPECT_EQ(roles_of_document(), roles_of_table());
}

TEST(Openapi, KeepsTheKeysThatClientsRelyOn) {
  const std::set<std::string> documented =
      required_fields(document().at("components").at("schemas"));
  ASSERT_FALSE(listed_fields().empty());
  EXPECT_THAT(missing_in(listed_fields(), documented), IsEmpty())
      << "a client may rely on these keys; they stay";
  EXPECT_THAT(missing_in(documented, listed_fields()), IsEmpty())
      << "add these keys to testdata/required_fields.txt";
}

TEST(Openapi, NoticesAKeyThatIsRemoved) {
  nlohmann::json schemas = document().at("components").at("schemas");
  schemas.at("Job").at("required").erase(0);
  EXPECT_EQ(missing_in(listed_fields(), required_fields(schemas)).size(), 1U);
}

TEST(Openapi, NamesOnlyPartsThatItHas) {
  const nlohmann::json whole = document();
  std::set<std::string> references;
  collect_references(whole, references);
  EXPECT_FALSE(references.empty());
  for (const std::string& reference : references)
    EXPECT_TRUE(whole.contains(nlohmann::json::json_pointer(reference.substr(1)))) << reference;
}

}  // namespace
}  // namespace regatta::api
