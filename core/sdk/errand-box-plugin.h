/* SPDX-License-Identifier: MIT */
#pragma once

/* The one header a plugin includes. docs/plugin-author-guide.md leads through it. */

#include "eb-chat-message.h"
#include "eb-chat-transport.h"
#include "eb-config-section.h"
#include "eb-container-backend.h"
#include "eb-container-spec.h"
#include "eb-credential-store.h"
#include "eb-doctor-check.h"
#include "eb-env-file.h"
#include "eb-error.h"
#include "eb-host.h"
#include "eb-json.h"
#include "eb-log.h"
#include "eb-plugin.h"
#include "eb-secret.h"
#include "eb-types.h"
#include "eb-version.h"
