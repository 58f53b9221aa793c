package nodes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pitchpipe/exporter/api"
)

// Placeholder stands for the name of the node in a pattern.
const Placeholder = "{node}"

// ErrPattern means that a pattern leads to no exporter.
var ErrPattern = errors.New("want unix:/PATH/{node}.sock or https://{node}:PORT")

// ErrNode means that a node has no name, or one that is no host name.
var ErrNode = errors.New("not a node that can be asked")

// The longest name of a host.
const maxName = 253

func checkPattern(pattern string) error {
	if !strings.Contains(pattern, Placeholder) {
		return fmt.Errorf("%w: %s is missing in %q", ErrPattern, Placeholder, pattern)
	}
	if err := api.CheckAddress(at(pattern, "n")); err != nil {
		return fmt.Errorf("%w: %w", ErrPattern, err)
	}
	return nil
}

func at(pattern, node string) string { return strings.ReplaceAll(pattern, Placeholder, node) }

// byTLS reports whether a pattern leads over the network.
func byTLS(pattern string) bool { return strings.HasPrefix(pattern, "https:") }

// checkName refuses names that could lead elsewhere when they are put into a path or
// an address.
func checkName(node string) error {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}
	switch {
	case node == "":
		return fmt.Errorf("%w: where the job runs is not known", ErrNode)
	case len(node) > maxName, node[0] == '.', node[0] == '-', strings.ContainsFunc(node, odd):
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
	if e.dir != nil {
		where := func(ctx context.Context) ([]string, error) { return e.dir.addresses(ctx, node) }
		c, err := api.NewClientOf(node, where, e.own)
		if err != nil {
			return nil, nil, err
		}
		return c, c.Close, nil
	}
	c, err := api.NewClientAt(at(e.cfg.Pattern, node), e.own)
	if err != nil {
		return nil, nil, err
	}
	return c, c.Close, nil
}
