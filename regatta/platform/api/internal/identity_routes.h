// api/internal/identity_routes.h: the routes of users and tokens.
#pragma once

#include "regatta/platform/api/api_service.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

void list_users(controller::ControllerRuntime& runtime, const ApiRequest& request);
// {"role": "user", "disabled": false, "password": "..."}
void set_user(controller::ControllerRuntime& runtime, const HashPassword& hash_password,
              const ApiRequest& request);
void remove_user(controller::ControllerRuntime& runtime, const ApiRequest& request);
// Those of the caller; of all users for an admin. Never a secret.
void list_tokens(controller::ControllerRuntime& runtime, const ApiRequest& request);
// {"name": "laptop", "use": "api", "lifetime": "30d", "uses": 1}: answers with the secret, once.
// An operator may make tokens of the use `join`, an admin those of another `user`.
void create_token(controller::ControllerRuntime& runtime, const ApiRequest& request);
void remove_token(controller::ControllerRuntime& runtime, const ApiRequest& request);

}  // namespace regatta::api
