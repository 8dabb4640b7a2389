/* SPDX-License-Identifier: MIT */
#pragma once

#include "eb-log.h"

/** EB_LOG_MASK_MAX: secrets the mask holds; beyond it the oldest gives way (64 sessions with all their secrets fit). */
#define EB_LOG_MASK_MAX 1024
