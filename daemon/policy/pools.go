package policy

import (
	"context"
	"slices"
	"sync"
)

// poolKey is what makes instances alike.
type poolKey struct{ digest, settings string }

// pools are all pools, each kept while a generation needs it. Those that were asked lately keep instances, the others none: so many applications
// with settings of their own cost no memory while they rest.
type pools struct {
	engine  *engine
	library *library
	most    int // pools with instances

	mu    sync.Mutex
	pools map[poolKey]*pool
	used  []*pool // those with instances, the one that was asked last at the end
}

func newPools(e *engine, l *library, most int) *pools {
	return &pools{engine: e, library: l, most: most, pools: map[poolKey]*pool{}}
}

// of returns the pool of a module with settings. It takes over the caller's hold on the module; the pool must be released.
func (p *pools) of(ctx context.Context, m *module, settings string) *pool {
	p.mu.Lock()
	known, there := p.pools[poolKey{m.Digest, settings}]
	if !there {
		known = newPool(p.engine, m, settings)
		p.pools[known.key] = known
	}
	known.refs++
	p.mu.Unlock()
	if there {
		p.library.release(ctx, m)
	}
	return known
}

// retain says that one more needs the pool.
func (p *pools) retain(known *pool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known.refs++
}

// release says that one less needs the pool, and ends it if that was the last.
func (p *pools) release(ctx context.Context, known *pool) {
	p.mu.Lock()
	known.refs--
	last := known.refs == 0
	if last {
		delete(p.pools, known.key)
		p.used = slices.DeleteFunc(p.used, func(q *pool) bool { return q == known })
	}
	p.mu.Unlock()
	if last {
		known.end(ctx)
		p.library.release(ctx, known.module)
	}
}

// touch says that a pool was asked, and lets the one that was not for the longest time give up its instances if there are too many with some.
func (p *pools) touch(ctx context.Context, known *pool) {
	p.mu.Lock()
	if n := len(p.used); n > 0 && p.used[n-1] == known || p.pools[known.key] != known {
		p.mu.Unlock()
		return
	}
	var oldest *pool
	p.used = append(slices.DeleteFunc(p.used, func(q *pool) bool { return q == known }), known)
	if len(p.used) > p.most {
		oldest = p.used[0]
		p.used = slices.Delete(p.used, 0, 1)
	}
	p.mu.Unlock()
	if oldest != nil {
		oldest.shed(ctx)
	}
}
