"""The screen: app → screens (own state, bind it down) → panes (strangers to each other) → widgets."""
