"""Receiver of the telemetry of other agents: OTLP over HTTP on this machine.

`receiver` checks requests and reads their bodies within limits, `spans` parses protobuf and JSON, `conventions`
converts spans of the OpenTelemetry GenAI semantic conventions to calls and model turns, and `recorder` writes them to
the history. Nothing is forwarded.
"""
