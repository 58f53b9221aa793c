package nodes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"pitchpipe/exporter/api"
)

// Placeholder stands for the name of the node in a pattern.
const Placeholder = "{node}"

// ErrNode means that a node has no name, or one that is not a host name.
var ErrNode = errors.New("not a node that can be asked")

// hostName is a name that can be put into a path or an address.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,252}$`)

func at(pattern, node string) string { return strings.ReplaceAll(pattern, Placeholder, node) }

// checkName refuses names that could lead elsewhere when they are put into a path or
// an address.
func checkName(node string) error {
	switch {
	case node == "":
		return fmt.Errorf("%w: where the job runs is not known", ErrNode)
	case !hostName.MatchString(node):
		return fmt.Errorf("%w: %q", ErrNode, node)
	}
	return nil
}

// dial makes a client; nothing is sent before the first call.
func (e *Exporters) dial(node string) (Meter, func(), error) {
	if !e.many() {
		c := api.NewClient(e.cfg.Socket)
		return c, c.Close, nil
	}
	c, err := (*api.Client)(nil), error(nil)
	if e.dir != nil {
		c, err = api.NewClientOf(node, func(ctx context.Context) ([]string, error) { return e.dir.addresses(ctx, node) }, e.own)
	} else {
		c, err = api.NewClientAt(at(e.cfg.Pattern, node), e.own)
	}
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}
