/* SPDX-License-Identifier: MIT */
#pragma once

/* The reactions to a prompt, one at a time: the same for every transport that has reactions. */
#define EB_CHAT_SYMBOL_ACCEPTED "\xe2\x8f\xb3"                /* U+23F3 hourglass: waits or is worked on */
#define EB_CHAT_SYMBOL_DONE "\xe2\x9c\x85"                    /* U+2705 check mark */
#define EB_CHAT_SYMBOL_FAILED "\xe2\x9d\x8c"                  /* U+274C cross mark: failed or refused */
#define EB_CHAT_SYMBOL_INTERRUPTED "\xe2\x8f\xb9\xef\xb8\x8f" /* U+23F9 U+FE0F stop: ended by a person */
