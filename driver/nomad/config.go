package nomad

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// ErrConfig means that a Config cannot work.
var ErrConfig = errors.New("invalid configuration")

// ErrNotLeading means that another controller leads, and this one changes nothing.
var ErrNotLeading = errors.New("this controller does not lead")

// Config says how a Driver works.
type Config struct {
	// Client reaches the cluster with the rights of the controller. Required.
	Client *api.Client
	// Namespaces are those whose jobs are seen, * for all that the token may read; none =
	// default. A job file that names none goes to the first.
	Namespaces []string
	// Journal is what survives this process. Required.
	Journal Journal
	// Listen follows the output of a running attempt until it ends and reports each
	// epoch to the exporter of the node; unit is driver.Attempt.Unit. Nil: Listen is
	// ErrUnsupported.
	Listen func(ctx context.Context, node, unit string, p driver.Progress, output io.Reader) error
	// Leads is asked before anything is changed in Nomad: an error and it is not. Nil: this
	// process is alone. Where it stands by, jobs are only looked at; see Driver.Recall.
	Leads func(ctx context.Context) error
	// Resync is how often everything is read anew, 0 = 30 s.
	Resync time.Duration
	// AfterStep is called at the points of package move; tests crash there.
	AfterStep func(point string)
	// Now is the time by which what is old is forgotten; nil = time.Now.
	Now func() time.Time
	// Logger logs what was done; nil = silent.
	Logger *slog.Logger
}

// Journal is move.Store, whose Save is ErrNotLeading where another controller leads.
type Journal = move.Store
