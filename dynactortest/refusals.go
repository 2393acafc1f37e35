package dynactortest

import (
	"net/http"
	"strings"
)

// Answer answers with an error in DynamoDB's form. The request does not reach
// the server. The code is without namespace, like "ValidationException".
func Answer(status int, code, message string) Action {
	return Action{run: func(*call, sender) (*answer, error) {
		return errorAnswer(status, code, message), nil
	}}
}

// Throttle answers ProvisionedThroughputExceededException. The request does not
// reach the server.
func Throttle() Action {
	return Answer(http.StatusBadRequest, "ProvisionedThroughputExceededException",
		"The level of configured provisioned throughput for the table was exceeded.")
}

// Conflict answers TransactionConflictException, what a PutItem, UpdateItem or
// DeleteItem gets when a transaction holds its item. The request does not reach
// the server.
func Conflict() Action {
	return Answer(http.StatusBadRequest, "TransactionConflictException",
		"Transaction is ongoing for the item")
}

// InProgress answers TransactionInProgressException, what a transaction gets
// when one with the same token is still under way. The request does not reach
// the server.
func InProgress() Action {
	return Answer(http.StatusBadRequest, "TransactionInProgressException",
		"Transaction with the same client request token is still in progress")
}

// CancelTransaction answers TransactionCanceledException with one reason an
// item: "None", "TransactionConflict", "ThrottlingError",
// "ConditionalCheckFailed" and so on. The request does not reach the server.
func CancelTransaction(reasons ...string) Action {
	type reason struct {
		Code    string
		Message string `json:",omitempty"`
	}
	list := make([]reason, len(reasons))
	for i, code := range reasons {
		list[i] = reason{Code: code}
		if code != "None" {
			list[i].Message = "refused by a test"
		}
	}
	body := map[string]any{
		"__type": errorPrefix + "TransactionCanceledException",
		"Message": "Transaction cancelled, please refer cancellation reasons for specific reasons [" +
			strings.Join(reasons, ", ") + "]",
		"CancellationReasons": list,
	}
	return Action{run: func(*call, sender) (*answer, error) {
		return jsonAnswer(http.StatusBadRequest, body), nil
	}}
}
