"""Every row of the interface that the coordinator has to keep, and under which heading of these tests it is held.

One rule: this page is written by hand. A test whose name does not stand here, or a row here that no test is named
after, fails `test_contents.py`.

A test is named `test_<heading>__<row>`. Where one function holds many rows, its name is `test_<heading>__<what>` for
a heading here, and each of its cases begins with its row. Left out are the rows of the player API, which operators
host (2.12, 4.4 and their part of 5 and 8).
"""

from __future__ import annotations

_NUMBERS = "jackpotNumber bonus1 bonus2 bonus3 bonus4 bonus5"
_ROUND_IN_LIST = (
    "id state ticketPriceUsdc oddsRange totalTickets operatorCount escrowedOperatorCount excludedOperatorCount "
    "jackpotWon jackpotWinnerCount jackpotAmount subPrizeTotalUsdc totalDeposited createdAt scheduledDrawTime"
)
_OPERATOR = "operatorId name jurisdiction active reputationScore totalRoundsParticipated totalRoundsWon registeredAt"
_OPERATOR_IN_FULL = f"{_OPERATOR} totalRoundsEscrowed totalRoundsExcluded totalPayoutsOnTime"
_WINNER = "operatorId ticketId prizeAmount claimed"
_FORM = "companyName jurisdiction gamingLicenseNumber contactEmail contactName ethereumAddress"
_TICKET = f"ticketId {_NUMBERS} isQuickPick"
_MANIFEST = "roundId manifestJson manifestHash ticketCount"
_PENDING = "applicationId companyName status submittedAt reviewedAt reviewNote"

_ROWS = {
    # Section 2: fields.
    "2_1_round_in_list": _ROUND_IN_LIST,
    "2_1_round_in_full": f"{_ROUND_IN_LIST} operatorIds escrowedOperatorIds excludedOperatorIds fullManifestHash "
    f"effectiveManifestHash drawSeed winnerIndex winningOperatorId {_NUMBERS} previousRoundHash chainedAnchorHash "
    "settlementHash btcSettlementTxHash seedCommit rulesHash worstCaseUsdc availableForPrizesUsdc failureReason",
    "2_2_round_event": "type roundId timestamp data ROUND_OPENED MANIFEST_SUBMITTED ROUND_SEALED ROUND_DRAWN "
    "ROUND_SETTLED",
    "2_3_draw": f"drawId roundId drawSeed {_NUMBERS} jackpotWon jackpotWinnerCount jackpotAmount createdAt",
    "2_4_sub_prizes": "1 2 3 4 5",
    "2_4_sub_prize_winner": _WINNER,
    "2_4_sub_prize_winner_in_breakdown": f"{_WINNER} claimDeadline",
    "2_5_odds_ladder": "0 100,000,000 1,000,000,000 10,000,000,000 100,000,000,000",
    "2_6_operator_in_list": _OPERATOR,
    "2_6_operator_in_full": _OPERATOR_IN_FULL,
    "2_7_own_profile": f"{_OPERATOR_IN_FULL} address webhookUrl lastHeartbeat totalPayoutsLate onChainId "
    "onChainBondAmount onChainBondStatus onChainLastAttestation",
    "2_8_application_required": _FORM,
    "2_8_application_optional": "website description",
    "2_8_application_validation": f"{_FORM} website description",
    "2_8_application_pending": _PENDING,
    "2_8_application_approved": f"{_PENDING} operatorId onboarding",
    "2_8_onboarding": "step1 step2 step3 step4 step5 sdkDocs",
    "2_9_statistics": "totalRounds closedRounds settledRounds failedRounds activeRounds totalOperators activeOperators "
    "totalTicketsSold jackpotPool drawsSinceLastWin currentOddsRange cumulativeTickets protocolLaunchDate",
    "2_10_ticket": _TICKET,
    "2_10_ticket_required": _TICKET,
    "2_10_ticket_validation": _TICKET,
    "2_11_manifest": _MANIFEST,
    "2_11_manifest_required": _MANIFEST,
    "2_11_manifest_validation": _MANIFEST,
    # Section 3: states. SEALING to FAILED beside the published four are named by the events.
    "3_round_state": "OPEN SEALING SEALED ESCROWED DRAWN SETTLED CLOSED FAILED",
    "3_transition": "OPEN_manifest_accepted_OPEN",
    "3_application_status": "pending approved rejected",
    "3_check_tickets": "once_the_round_is_DRAWN",
    # Section 4: endpoints.
    "4_1_public": "get_rounds get_rounds_id get_rounds_id_events get_draw_id get_draw_id_winners "
    "get_draw_id_winners_lists_empty_tiers get_sub_prizes_drawId get_history get_jackpot get_jackpot_counter "
    "get_jackpot_counter_is_cacheable get_odds get_odds_on_the_last_step_has_no_next_milestone get_stats "
    "get_operators get_operators_id post_apply post_apply_while_one_is_pending_for_the_same_e_mail "
    "get_application_status_id get_application_status_id_does_not_show_the_token get_health",
    "4_2_operator": "post_tickets post_manifest post_check_tickets post_check_tickets_finds_the_published_winners "
    "post_heartbeat put_webhook get_rounds get_rounds_shows_those_it_is_invited_to get_me post_test_webhook "
    "post_test_webhook_all get_webhook_logs",
    "4_3_auth": "post_operator_login post_refresh post_logout",
    # Section 5: authentication.
    "5_scope": "public_endpoints_need_nothing application_status_needs_X_Application_Token "
    "operator_endpoints_take_X_Service_Key operator_endpoints_take_a_Bearer_token",
    "5_rule": "1_login_exchanges_an_API_key_for_a_pair_of_tokens 2_an_access_token_is_a_JWT_of_900_seconds "
    "2_a_refresh_token_lives_7_days 3_refreshing_revokes_the_used_token 3_logout_revokes_the_given_token "
    "4_the_API_key_comes_with_the_approval_and_never_again 5_webhooks_are_signed "
    "6_wrong_credentials_are_401 7_admins_have_keys_of_their_own",
    # Section 6: the log and the webhooks.
    "6_1_log": "get_rounds_id_events_shows_these_entries",
    "6_2_delivery": "rule_1_is_a_POST_of_a_JSON_body rule_2_is_signed_with_the_operators_key rule_3_an_answer_in_time "
    "rule_4_three_attempts_with_exponential_backoff rule_5_the_sandbox_sends_samples_on_demand",
    "6_2_event": "round.opened round.sealing round.sealing_deadline round.sealed round.anchored round.escrowed "
    "round.escrow_deadline round.drawn round.settled round.closed round.failed operator.won operator.excluded "
    "operator.heartbeat_missed",
    "6_2_emission": "round_sealed_and_ROUND_SEALED_report_sealedCount round_drawn_corresponds_to_ROUND_DRAWN "
    "round_settled_corresponds_to_ROUND_SETTLED",
    # Section 7: errors.
    "7_error_body": "400 401 403 404 405 409 413 415 422",
    "7_errors": "an_unknown_path_is_404_and_JSON 409_of_apply_names_the_pending_application "
    "201_is_the_status_of_a_successful_apply 401_of_a_receiver_is_a_failed_delivery 422_names_every_wrong_field",
    # Section 8: limits.
    "8_constant": "pagination_of_rounds_is_50_from_0 pagination_of_history_is_20_from_0 ticket_price_is_3000000 "
    "access_token_lifetime_is_900_seconds refresh_token_lifetime_is_7_days "
    "webhook_deadline_is_30_seconds_and_attempts_are_3",
    "8_ticket_number": _NUMBERS,
    "8_header": "X_RateLimit_Limit X_RateLimit_Remaining X_RateLimit_Reset_is_a_Unix_time "
    "X_RateLimit_Reset_is_in_seconds_if_so_set",
    "8_tier": "public_60_a_minute_by_IP_address authenticated_120_a_minute_by_API_key",
    "8_exceeded": "is_429_and_error",
    "8_edge": "public operator admin",
    "8_limit": "page_size_is_200_at_most tickets_per_submission_are_50000_at_most "
    "request_body_is_1_MiB_at_most_and_16_MiB_for_tickets",
    # Section 9: versioning.
    "9_version": "is_V2_numbers_rollover_and_sub_prizes health_returns_a_version_string paths_carry_no_version_segment",
    "9_documentation": "openapi_json_is_OpenAPI_3_1_of_the_version_that_health_names docs_is_a_page_for_people "
    "sdkDocs_of_the_onboarding_leads_to_a_page",
    "9_older_shape": "winnerIndex_and_winningOperatorId_of_a_round closedRounds_of_the_statistics "
    "winner_and_amounts_of_the_webhooks",
}

CONTENTS = {f"{heading}: {row}" for heading, rows in _ROWS.items() for row in rows.split()}
HEADINGS = frozenset(_ROWS)
