package main

import (
	"context"
	"io"

	"github.com/dynactor/dynactor/dynactortest"
)

// serverReady is what the server reports.
type serverReady struct{ URL string }

// runServer is the role of the process that embeds a DynamoDB.
func runServer(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, err := readConfig(ctx, stdin, &struct{}{})
	if err != nil {
		return err
	}
	server := dynactortest.NewEmbedded()
	defer server.Close()
	if err := reportReady(stdout, serverReady{server.URL}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
