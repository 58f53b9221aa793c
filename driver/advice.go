package driver

import (
	"context"
	"time"
)

// Adviser is a driver whose scheduler takes other numbers for jobs that no one tunes.
type Adviser interface {
	// Queue returns the jobs that wait, run, or ended a short while ago, no matter who tunes them,
	// without their files. Their TimeLimit, Nice and Prefers are what they have now.
	Queue(ctx context.Context) ([]Job, error)

	// Past returns the jobs that ended between these times, as far as the scheduler's accounting
	// knows, or ErrUnsupported where there is none. With another error come the jobs that were read before it.
	Past(ctx context.Context, since, until time.Time) ([]Job, error)

	// Advise makes a job wait with other numbers than its owner's, or gives those back. It is
	// repeatable. The scheduler's side gives a job that runs its owner's time limit back before
	// it meets a lower one, also where no one calls Advise any more. ErrDenied and
	// ErrUnsupported say that it never will do so; ErrConflict, that the job waits no longer.
	Advise(ctx context.Context, a Advice) error
}

// Advice is what a job has while it waits instead of what its owner asked for. It replaces
// earlier advice: one that is empty except for the job is the return to the owner's own.
type Advice struct {
	Job       JobID         `json:"job"`
	TimeLimit time.Duration `json:"time_limit,omitempty"` // whole minutes, not above the owner's; 0 = the owner's
	Nice      int           `json:"nice,omitempty"`       // above the owner's: how much its priority is lower

	// Class of nodes that it prefers, where its owner prefers none.
	Class string `json:"class,omitempty"`
}
