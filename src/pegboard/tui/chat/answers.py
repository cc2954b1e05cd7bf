"""Approvals for the answers of a card, including the dialogs that an answer opens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.app import App

from pegboard.models import JsonObject, ToolCall
from pegboard.models.approval import Approval
from pegboard.models.rule_scope import session_rule
from pegboard.results.clean import clean_line
from pegboard.tui.state.approvals import ApprovalRequest

if TYPE_CHECKING:
    from pegboard.runtime import Runtime


async def approval_of(
    app: App[None], runtime: Runtime, request: ApprovalRequest, shown: ToolCall, chosen: str
) -> Approval | None:
    """Return the approval for an answer on a card, or None if the user closed the dialog.

    Args:
        app: The app that shows the dialogs.
        runtime: Provides tools and rules.
        request: The call awaiting approval.
        shown: The call as it may be shown, without secrets.
        chosen: One of the card's `ANSWERS`.
    """

    def is_waiting() -> bool:
        return any(one.call.id == request.call.id for one in getattr(app, "requests", ()))

    match chosen:
        case "session":
            return Approval(answer="session", rule=session_rule(request.spec, request.call))
        case "always":
            from pegboard.tui.dialogs.approval_scope import ApprovalScope

            dialog = ApprovalScope(runtime, request.spec, request.call, shown, is_waiting)
            approval: Approval | None = await app.push_screen_wait(dialog)
            return approval
        case "reject_why":
            from pegboard.tui.dialogs.ask_name import AskName

            title = f"Why are you rejecting {clean_line(shown.name)}?"
            reason: str | None = await app.push_screen_wait(AskName(title))
            return Approval(answer="reject", reason=reason) if reason is not None else None
        case "edit":
            from pegboard.tui.dialogs.edit_call import EditCallScreen

            dialog_of_edit = EditCallScreen(request.spec, shown.args, request.call.args, is_waiting=is_waiting)
            edited: JsonObject | None = await app.push_screen_wait(dialog_of_edit)
            return Approval(answer="once", args=edited) if edited is not None else None
        case "once" | "reject":
            return Approval(answer=chosen)
        case _:
            return None
