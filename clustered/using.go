// Package clustered is the seam for virtual actors: it gives them persistence ids
// that are the same at every activation, and answers their callers on other nodes
// when a write fails. It is the only package here that needs the framework's
// cluster.
package clustered

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"

	"github.com/dynactor/dynactor"
)

// Using is [dynactor.Using] for virtual actors, generated grains among them. The
// persistence id is [ID] and the answer to a message that failed [Failure], unless
// the options say otherwise.
//
// Give it to the props of the kind, with actor.WithReceiverMiddleware. With
// persistence.Using in its place the id would be the name that the framework makes
// up for each activation, which dynactor refuses.
func Using(p *dynactor.Provider, o dynactor.UsingOptions) actor.ReceiverMiddleware {
	if o.ID == nil {
		o.ID = ID
	}
	if o.Reply == nil {
		o.Reply = func(e *dynactor.Error) any { return Failure(e) }
	}
	return dynactor.Using(p, o)
}

// ID is the persistence id of a virtual actor: its kind, a slash, and its
// identity. Slashes and per cent signs in the kind are escaped as in a URL, so that
// no two actors have the same id. Outside of a cluster it is the actor's name.
func ID(ctx actor.ReceiverContext) string {
	ci := identity(ctx)
	if ci == nil {
		return ctx.Self().GetId()
	}
	return escape.Replace(ci.Kind) + "/" + ci.Identity
}

var escape = strings.NewReplacer("%", "%25", "/", "%2F")

// identity is nil outside of a cluster, where the framework panics.
func identity(ctx actor.ReceiverContext) (ci *cluster.ClusterIdentity) {
	defer func() { _ = recover() }()
	return cluster.GetClusterIdentity(ctx)
}

// Failure is the answer to the caller of a virtual actor whose events could not be
// stored: cluster.Request returns it as a response, and generated clients as an
// error. Its reason is the error's Code.
func Failure(e *dynactor.Error) *cluster.GrainErrorResponse {
	return cluster.NewGrainErrorResponse(e.Code(), e.Error())
}
