package main

import (
	"encoding/json"
	"io"
	"net/http"

	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const (
	maxCommand = 1 << 16 // bytes
	// reasonHeader tells why an account has not answered, where it told.
	reasonHeader = "Bank-Reason"
)

// gateway lets clients ask accounts through a node. Each node has one and goes by
// its own view of the cluster, so in a split brain both sides have clients.
//
//	POST /accounts/{id}  a command as a protobuf Any; the answer is one, too
//	GET  /members        the ids of the members, as the node sees the cluster
func gateway(c *cluster.Cluster) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /accounts/{id}", func(w http.ResponseWriter, r *http.Request) {
		command, err := readCommand(r)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		// One try: the client repeats, through another node if it likes.
		answer, err := c.Request(r.PathValue("id"), kind, command, cluster.WithRetryCount(1))
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		// The event could not be stored. The answer comes from clustered.Using.
		if failed, is := answer.(*cluster.GrainErrorResponse); is {
			w.Header().Set(reasonHeader, failed.GetReason())
			http.Error(w, failed.GetMessage(), http.StatusServiceUnavailable)
			return
		}
		writeAnswer(w, answer)
	})
	mux.HandleFunc("GET /members", func(w http.ResponseWriter, _ *http.Request) {
		ids := []string{}
		for _, m := range c.MemberList.Members().Members() {
			ids = append(ids, m.Id)
		}
		_ = json.NewEncoder(w).Encode(ids) // a client that is gone asks again
	})
	return mux
}

func readCommand(r *http.Request) (proto.Message, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxCommand))
	if err != nil {
		return nil, err
	}
	var command anypb.Any
	if err := proto.Unmarshal(body, &command); err != nil {
		return nil, err
	}
	return command.UnmarshalNew()
}

func writeAnswer(w http.ResponseWriter, answer any) {
	m, ok := answer.(proto.Message)
	if !ok {
		http.Error(w, "the answer is no message", http.StatusInternalServerError)
		return
	}
	packed, err := anypb.New(m)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body, err := proto.Marshal(packed)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(body)
}
