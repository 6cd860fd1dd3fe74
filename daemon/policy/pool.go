package policy

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/retinue-sched/retinue/hostabi"
)

// errRetired reports that a pool has ended: another policy has taken over meanwhile.
var errRetired = errors.New("the policy has been retired")

const (
	// leastReserve is how many bytes of a view the first image has room for. It is no more than a small view: a module that is asked about
	// few executors should not be copied with room for many.
	leastReserve = 16 << 10
	// warm is how many instances a pool keeps that nobody uses: one for the next question, and a spare should a call spoil that one.
	warm = 2
)

// pool holds the instances of one module with one set of settings. They are all alike, since each is put back after a call to the image that was
// taken before the first: any of them answers for any application, and what a call leaves behind is gone.
type pool struct {
	engine   *engine
	module   *module
	settings string
	key      poolKey
	refs     int           // generations that need it; the pools count
	places   chan struct{} // holds one for each call in progress
	turn     chan struct{} // held while an image is made
	done     chan struct{} // closed when the pool ends
	spares   sync.WaitGroup

	mu     sync.Mutex
	image  *image // nil until the first instance has started
	idle   []*instance
	making bool // a spare
	ended  bool
}

func newPool(e *engine, m *module, settings string) *pool {
	return &pool{
		engine: e, module: m, settings: settings, key: poolKey{m.Digest, settings},
		places: make(chan struct{}, max(4, 2*runtime.GOMAXPROCS(0))), turn: make(chan struct{}, 1), done: make(chan struct{}),
	}
}

// ask asks about an encoded view, whose row of the decision is given besides, and returns a checked decision and how much fuel it took. Waiting
// for an instance and the call take as long as the key of the configuration says at most, each.
func (p *pool) ask(ctx context.Context, hook hostabi.Hook, row *hostabi.DecisionRow, view []byte, key timeKey) (hostabi.Decision, int64, *fault) {
	limit := key.of(p.engine.cfg)
	i, f := p.borrow(ctx, len(view), limit)
	if f != nil {
		return hostabi.Decision{}, 0, f
	}
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	i.world.begin(row.ElapsedMS, row.WallMS, row.Seed)
	decision, f := i.ask(bounded, hook, view)
	f = f.under(p.engine.cfg, key)
	p.module.voice.pass(ctx, i.world)
	ticks := i.ticks
	p.giveBack(ctx, i, f != nil)
	return decision, ticks, f
}

// wake makes sure that the module starts and takes its settings.
func (p *pool) wake(ctx context.Context) *fault {
	i, f := p.borrow(ctx, 0, p.engine.cfg.StartTimeout)
	if f == nil {
		p.giveBack(ctx, i, false)
	}
	return f
}

// borrow returns an instance with room for a view. It must be given back.
func (p *pool) borrow(ctx context.Context, size int, limit time.Duration) (*instance, *fault) {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	if f := p.await(ctx, p.places, patience); f != nil {
		return nil, f
	}
	i, f := p.ready(ctx, size, patience)
	if f != nil {
		<-p.places
	}
	return i, f
}

// await takes a place, or the turn, if there is one in time.
func (p *pool) await(ctx context.Context, turn chan struct{}, patience *time.Timer) *fault {
	select {
	case turn <- struct{}{}: // there mostly is one
		return nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-p.done:
		return retired()
	case <-ctx.Done():
		return faultf(causeCancelled, "was not asked: %w", context.Cause(ctx))
	case <-patience.C:
		return faultf(causeBusy, "was busy with other questions for too long")
	}
}

func retired() *fault { return faultf(causeCancelled, "was not asked: %w", errRetired) }

// ready returns an instance as the image has it, which is made first if there is none or if it lacks room.
func (p *pool) ready(ctx context.Context, size int, patience *time.Timer) (*instance, *fault) {
	img, i, f := p.pick(size)
	if f == nil && i == nil && img == nil {
		if f = p.await(ctx, p.turn, patience); f != nil {
			return nil, f
		}
		defer func() { <-p.turn }()
		img, i, f = p.pick(size) // another may have made one meanwhile
	}
	switch {
	case f != nil || i != nil:
		return i, f
	case img == nil:
		return p.start(ctx, size)
	}
	defer p.drop(img)
	return p.engine.revive(ctx, p.module, img)
}

// pick returns an instance that is ready, or else the image to make one of, which must be dropped, or nothing if there is none with room.
func (p *pool) pick(size int) (*image, *instance, *fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch last := len(p.idle) - 1; {
	case p.ended:
		return nil, nil, retired()
	case p.image == nil || p.image.reserve < size:
		return nil, nil, nil
	case last >= 0:
		i := p.idle[last]
		p.idle = p.idle[:last]
		return nil, i, nil
	}
	p.image.holds++
	return p.image, nil, nil
}

// drop says that one less needs an image.
func (p *pool) drop(img *image) {
	if img == nil {
		return
	}
	p.mu.Lock()
	img.holds--
	last := img.holds == 0
	p.mu.Unlock()
	if last {
		img.close()
	}
}

// start starts an instance with room for a view of a size, or up to twice as much, and makes the image.
func (p *pool) start(ctx context.Context, size int) (*instance, *fault) {
	reserve := leastReserve
	for reserve < size {
		reserve *= 2
	}
	i, f := p.engine.start(ctx, p.module, p.settings, reserve)
	if f != nil {
		return nil, f
	}
	i.image.holds = 1
	p.replace(ctx, i.image)
	return i, nil
}

// replace makes an image, or none, the one that instances are made of, and ends those that were made of another. It takes over the caller's hold.
func (p *pool) replace(ctx context.Context, img *image) {
	p.mu.Lock()
	before, idle := p.image, p.idle
	p.image, p.idle = img, nil
	p.mu.Unlock()
	p.drop(before)
	for _, i := range idle {
		i.close(ctx)
	}
}

// giveBack puts an instance back to its image for the next question. One that is spoilt is closed, and a spare takes its place.
func (p *pool) giveBack(ctx context.Context, i *instance, spoilt bool) {
	defer func() { <-p.places }()
	if spoilt || !i.restore(i.image) || !p.keep(i) {
		i.close(ctx)
		p.makeSpare(ctx)
	}
}

// keep keeps an instance that is ready, if there is need of it.
func (p *pool) keep(i *instance) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || i.image != p.image || len(p.idle) >= warm {
		return false
	}
	p.idle = append(p.idle, i)
	return true
}

// makeSpare makes an instance for the next question, unless there is one.
func (p *pool) makeSpare(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.making || p.image == nil || len(p.idle) > 0 {
		return
	}
	p.making = true
	img := p.image
	img.holds++
	ctx = context.WithoutCancel(ctx)
	p.spares.Go(func() {
		defer p.drop(img)
		i, f := p.engine.revive(ctx, p.module, img)
		p.mu.Lock()
		p.making = false
		p.mu.Unlock()
		if f == nil && !p.keep(i) {
			i.close(ctx)
		}
	})
}

// shed ends the instances that nobody uses and forgets the image: the next question makes them anew.
func (p *pool) shed(ctx context.Context) { p.replace(ctx, nil) }

// end lets no more questions in, waits for those in progress, which a deadline bounds, and ends all instances.
func (p *pool) end(ctx context.Context) {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	close(p.done)
	for range cap(p.places) {
		p.places <- struct{}{}
	}
	p.spares.Wait()
	p.shed(ctx)
}
