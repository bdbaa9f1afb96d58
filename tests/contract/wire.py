"""The wire contract as it was agreed, written by hand and not derived from any .proto: the second opinion.

A message is a table from field number to `type name`; an enum is its values without their prefix, numbered from 0.
"""

FROZEN_ENUMS = {
    "AgentSessionState": "UNSPECIFIED STARTING READY WORKING STOPPED ERRORED DISCONNECTED",
    "AgentToolCallStatus": "UNSPECIFIED PENDING IN_PROGRESS COMPLETED FAILED",
    "AgentPlanEntryStatus": "UNSPECIFIED PENDING IN_PROGRESS COMPLETED",
    "SessionInjectionKind": "UNSPECIFIED STEER DELIVER",
    "SessionErrorKind": "UNSPECIFIED ERROR ABORTED",
}

FROZEN_MESSAGES = {
    "AgentPlanEntry": {1: "string content", 2: "AgentPlanEntryStatus status"},
    "SessionEvent": {
        1: "string event_id",
        2: "int64 at_unix_ms",
        3: "oneof event SessionAssistantText assistant_text",
        4: "oneof event SessionThinking thinking",
        5: "oneof event SessionToolCall tool_call",
        6: "oneof event SessionToolCallUpdate tool_call_update",
        7: "oneof event SessionPlan plan",
        8: "oneof event SessionNotice notice",
        9: "oneof event SessionInjection session_injection",
        10: "oneof event SessionError session_error",
    },
    "SessionAssistantText": {1: "string text", 2: "string message_id"},
    "SessionThinking": {1: "string text", 2: "string message_id"},
    "SessionToolCall": {1: "string tool_call_id", 2: "string title", 3: "AgentToolCallStatus status"},
    "SessionToolCallUpdate": {
        1: "string tool_call_id",
        2: "AgentToolCallStatus status",
        3: "string output",
        4: "repeated SessionFileDiff diffs",
    },
    "SessionFileDiff": {1: "string path", 2: "optional string old_text", 3: "string new_text"},
    "SessionPlan": {1: "repeated AgentPlanEntry entries"},
    "SessionNotice": {1: "string text", 2: "optional string link"},
    "SessionInjection": {
        1: "SessionInjectionKind op_kind",
        2: "string message_id",
        3: "string from_handle",
        4: "string traceparent",
    },
    "SessionError": {1: "SessionErrorKind kind", 2: "string message", 3: "optional int32 status"},
    "SubscribeAgentSessionRequest": {1: "string session_id"},
    "AgentSessionFrame": {1: "string session_id", 2: "SessionEvent event", 3: "AgentSessionState state"},
}

FROZEN_RPCS = {
    "CompassService": {
        "SubscribeAgentSession": "SubscribeAgentSessionRequest -> stream AgentSessionFrame",
    },
}

ADDITIVE_FIELDS = {
    "AgentSessionFrame": {
        4: "uint64 seq",
        5: "SessionGap gap",
        6: "uint64 original_bytes",
        7: "int64 agent_at_unix_ms",
    },
    "SessionGap": {1: "uint64 first_seq", 2: "uint64 last_seq", 3: "uint64 dropped", 4: "SessionGapReason reason"},
    "SubscribeAgentSessionRequest": {2: "uint64 since_seq", 3: "SessionStart start"},
    "SessionError": {
        4: "FailureCategory category",
        5: "bool retryable",
        6: "optional int64 retry_after_ms",
        7: "string message_id",
        8: "string provider",
        9: "string model",
        10: "Failure failure",
        11: "SessionAbortOrigin abort_origin",
    },
    "SessionEvent": {
        11: "oneof event SessionUserMessage user_message",
        12: "oneof event SessionMessageEnd message_end",
        13: "oneof event SessionActivity activity",
        14: "oneof event SessionPrompt prompt",
        15: "oneof event SessionRunEvent run_event",
    },
    "SessionUserMessage": {1: "string text", 2: "string message_id", 3: "string prompt_id", 4: "bool steering"},
    "SessionMessageEnd": {
        1: "string message_id",
        2: "SessionMessageOutcome outcome",
        3: "SessionStopReason stop_reason",
        4: "SessionUsage usage",
    },
    "SessionUsage": {
        1: "int64 input_tokens",
        2: "int64 output_tokens",
        3: "int64 cache_read_tokens",
        4: "int64 cache_write_tokens",
        5: "int64 cost_microdollars",
    },
    "SessionActivity": {
        1: "SessionPhase phase",
        2: "int64 started_at_unix_ms",
        3: "string detail",
        4: "int32 attempt",
        5: "int32 max_attempts",
        6: "int64 delay_ms",
        7: "bool stalled",
        8: "string supersedes_event_id",
    },
    "SessionPrompt": {1: "string prompt_id", 2: "SessionPromptState state", 3: "string text", 4: "string author"},
    "TailSessionRequest": {
        1: "string session_id",
        2: "uint64 since_seq",
        3: "uint64 until_seq",
        4: "SessionStart start",
        5: "TailDelivery delivery",
        6: "bool follow",
    },
    "TailSessionResponse": {
        1: "repeated AgentSessionFrame frames",
        2: "uint64 head_seq",
        3: "uint64 resume_seq",
        4: "SessionEnd end",
    },
    "SessionEnd": {1: "SessionEndReason reason"},
    "Failure": {
        1: "string code",
        2: "string stage",
        3: "string path",
        4: "string problem",
        5: "string hint",
        6: "string message",
        7: "repeated FailureDiagnostic diagnostics",
        8: "FailureReceipt receipt",
    },
    "FailureReceipt": {
        1: "repeated string truncated_fields",
        2: "uint64 omitted_count",
        3: "uint64 dropped_count",
        4: "uint64 serialized_bytes",
        5: "bool minimal_fallback",
    },
    "PushEventsRequest": {
        1: "oneof item ProducerHello hello",
        2: "oneof item EventBatch batch",
        3: "oneof item ProducerBye bye",
        4: "oneof item PromptReturned prompt_returned",
    },
    "ProducerHello": {
        1: "string session_id",
        2: "string producer_id",
        3: "uint64 epoch",
        4: "string dialect",
        5: "string agent_name",
        6: "string agent_version",
        7: "string title",
        8: "bool take_over",
    },
    "EventBatch": {1: "uint64 first_seq", 2: "repeated InnerEvent events", 3: "uint64 dropped"},
    "InnerEvent": {1: "oneof body string json", 2: "oneof body Struct object", 3: "string prompt_id"},
    "ProducerBye": {1: "ProcessExit exit"},
    "PushEventsResponse": {
        1: "uint64 acked_seq",
        2: "uint64 head_seq",
        3: "uint64 window_events",
        4: "uint64 window_bytes",
        5: "bool closed",
    },
    "PushEventRequest": {
        1: "string session_id",
        2: "InnerEvent event",
        3: "string dialect",
        4: "string producer_id",
        5: "uint64 epoch",
        6: "uint64 seq",
    },
    "PushEventResponse": {1: "uint64 head_seq", 2: "bool duplicate"},
    "PromptReturned": {1: "string prompt_id", 2: "uint64 control_seq"},
    "ControlRequest": {
        1: "string session_id",
        2: "string producer_id",
        3: "uint64 epoch",
        4: "uint64 applied_control_seq",
    },
    "ControlResponse": {
        1: "uint64 control_seq",
        2: "oneof action ControlPrompt prompt",
        3: "oneof action ControlAbort abort",
    },
    "ControlPrompt": {1: "string prompt_id", 2: "string text", 3: "bool steer"},
    "SubmitPromptRequest": {
        1: "string session_id",
        2: "string text",
        3: "string client_request_id",
        4: "string author",
        5: "bool steer",
    },
}

ADDITIVE_ENUMS = {
    "SessionGapReason": "UNSPECIFIED SUBSCRIBER_LAG PRODUCER_OVERFLOW RETENTION",
    "SessionStart": "UNSPECIFIED LIVE",
    "SessionAbortOrigin": "UNSPECIFIED USER STEER WATCHDOG SHUTDOWN",
    "SessionMessageOutcome": "UNSPECIFIED COMPLETE INCOMPLETE",
    "SessionStopReason": "UNSPECIFIED STOP LENGTH TOOL_USE ERROR ABORTED DISCONNECTED",
    "SessionPhase": "UNSPECIFIED IDLE THINKING RESPONDING RUNNING_TOOL COMPACTING RETRYING AWAITING_INPUT",
    "SessionPromptState": "UNSPECIFIED QUEUED CLAIMED RECORDED RETURNED CANCELLED",
    "SessionEndReason": "UNSPECIFIED STOPPED HEAD UNTIL",
    "TailDelivery": "UNSPECIFIED LIVE COMPLETE",
    "FailureCategory": (
        "UNSPECIFIED AUTH_INVALID PERMISSION_DENIED QUOTA_EXHAUSTED RATE_LIMITED OVERLOADED SERVER_ERROR TIMEOUT"
        " NETWORK MODEL_NOT_FOUND CONTEXT_TOO_LONG CONTENT_FILTERED INVALID_REQUEST MALFORMED_RESPONSE UNKNOWN"
    ),
}

RPCS = {
    "CompassService": {
        **FROZEN_RPCS["CompassService"],
        "TailSession": "TailSessionRequest -> stream TailSessionResponse",
        "ListSessions": "ListSessionsRequest -> ListSessionsResponse",
        "GetSession": "GetSessionRequest -> GetSessionResponse",
        "GetTranscript": "GetTranscriptRequest -> GetTranscriptResponse",
        "SubmitPrompt": "SubmitPromptRequest -> SubmitPromptResponse",
        "CancelPrompt": "CancelPromptRequest -> CancelPromptResponse",
        "ListPrompts": "ListPromptsRequest -> ListPromptsResponse",
        "AbortSession": "AbortSessionRequest -> AbortSessionResponse",
        "CloseSession": "CloseSessionRequest -> CloseSessionResponse",
        "WatchSessions": "WatchSessionsRequest -> stream WatchSessionsResponse",
        "GetServerInfo": "GetServerInfoRequest -> GetServerInfoResponse",
    },
    "AgentGateway": {
        "PushEvents": "stream PushEventsRequest -> stream PushEventsResponse",
        "Control": "ControlRequest -> stream ControlResponse",
        "PushEvent": "PushEventRequest -> PushEventResponse",
    },
}
