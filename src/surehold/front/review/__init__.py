"""The local web page: review, approve and undo what agents did."""
