use super::*;
use hyper::body::Bytes;
use std::sync::atomic::AtomicUsize;
use std::task::Poll;

/// Shorter than any wait of the tests.
const MOMENT: Duration = Duration::from_millis(20);

impl Weight for Bytes {
    fn bytes(&self) -> Option<usize> {
        Some(self.len())
    }
}

fn client(number: u8) -> IpAddr {
    [10, 0, 0, number].into()
}

fn block_on<R>(test: impl Future<Output = R>) -> R {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(test)
}

/// A queue of one thread, and the pieces of work that began and that were given up.
struct Stage {
    work: Work<Bytes>,
    began: Arc<AtomicUsize>,
    given_up: Arc<AtomicUsize>,
    is_held: Arc<AtomicBool>,
}

type PendingResult = std::pin::Pin<Box<dyn Future<Output = Result<Bytes, NoResult>>>>;

impl Stage {
    fn new() -> Stage {
        let is_held = Arc::new(AtomicBool::new(true));
        Stage { work: Work::new(1, 100), began: Arc::default(), given_up: Arc::default(), is_held }
    }

    /// Work that takes until it is released.
    fn ask(&self, key: &str, from: IpAddr) -> PendingResult {
        let (work, key) = (self.work.clone(), key.to_owned());
        let (began, given_up, is_held) = (self.began.clone(), self.given_up.clone(), self.is_held.clone());
        let result = key.clone();
        let make = move |wanted: &Wanted| {
            began.fetch_add(1, Relaxed);
            while is_held.load(Relaxed) {
                if !wanted() {
                    given_up.fetch_add(1, Relaxed);
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Bytes::from(result.clone())
        };
        Box::pin(async move { work.ask(key, from, Duration::from_secs(60), make).await })
    }

    fn release(&self) {
        self.is_held.store(false, Relaxed);
    }

    fn counts(&self) -> (usize, usize) {
        (self.began.load(Relaxed), self.given_up.load(Relaxed))
    }
}

/// Polls once, so that the work is in the queue.
async fn begin(asked: &mut PendingResult) -> Option<Result<Bytes, NoResult>> {
    std::future::poll_fn(|context| match asked.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

async fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[test]
fn work_whose_clients_are_gone_is_not_begun_and_gives_up_while_it_runs() {
    block_on(async {
        let stage = Stage::new();
        let mut running = stage.ask("running", client(1));
        assert!(begin(&mut running).await.is_none());
        wait_until(|| stage.counts().0 == 1).await;
        // As many as come: none takes the place of another.
        for number in 0..1_000 {
            assert!(begin(&mut stage.ask(&number.to_string(), client(1))).await.is_none(), "{number}");
        }
        let mut last = stage.ask("last", client(1));
        assert!(begin(&mut last).await.is_none());
        drop(running);
        wait_until(|| stage.counts() == (2, 1)).await;
        stage.release();
        assert_eq!(last.await, Ok("last".into()));
        assert_eq!(stage.counts(), (2, 1));
    });
}

#[test]
fn a_full_queue_refuses_and_one_client_does_not_fill_it() {
    block_on(async {
        let stage = Stage::new();
        let mut open: Vec<PendingResult> = Vec::new();
        let mut refused = Vec::new();
        // The first one runs.
        let mut running = stage.ask("running", client(0));
        assert!(begin(&mut running).await.is_none());
        wait_until(|| stage.counts().0 == 1).await;
        for (number, from) in
            [1, 2, 3].into_iter().flat_map(|from| std::iter::repeat_n(from, WAITING_MAX)).enumerate()
        {
            let mut asked = stage.ask(&number.to_string(), client(from));
            match begin(&mut asked).await {
                None => open.push(asked),
                Some(result) => refused.push((from, result)),
            }
        }
        assert_eq!(open.len(), WAITING_MAX);
        assert_eq!(
            refused.iter().filter(|(from, _)| *from == 1).count(),
            WAITING_MAX - WAITING_OF_CLIENT_MAX
        );
        assert!(refused.iter().all(|(_, result)| *result == Err(NoResult::Busy)));
        // Equal work needs no place.
        let mut equal = stage.ask("running", client(3));
        assert!(begin(&mut equal).await.is_none());
        stage.release();
        assert_eq!((running.await, equal.await), (Ok("running".into()), Ok("running".into())));
        for asked in open {
            assert!(asked.await.is_ok());
        }
    });
}

#[test]
fn equal_requests_share_one_piece_of_work_and_its_result_for_a_while() {
    block_on(async {
        let stage = Stage::new();
        let mut first = stage.ask("a", client(1));
        let mut second = stage.ask("a", client(2));
        assert!(begin(&mut first).await.is_none() && begin(&mut second).await.is_none());
        wait_until(|| stage.counts().0 == 1).await;
        // It goes on for the second client.
        drop(first);
        tokio::time::sleep(MOMENT).await;
        stage.release();
        assert_eq!(second.await, Ok("a".into()));
        assert_eq!(stage.ask("a", client(3)).await, Ok("a".into()));
        assert_eq!(stage.counts(), (1, 0));
    });
}

#[test]
fn work_that_was_given_up_is_begun_again_for_a_client_that_comes_meanwhile() {
    block_on(async {
        let work: Work<Bytes> = Work::new(1, 0);
        let (began, may_end) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (runs, end) = (began.clone(), may_end.clone());
        let make = move |wanted: &Wanted| {
            let is_first = runs.fetch_add(1, Relaxed) == 0;
            while is_first && wanted() {
                std::thread::sleep(Duration::from_millis(1));
            }
            while is_first && !end.load(Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Bytes::from(if is_first { "half" } else { "whole" })
        };
        let again = make.clone();
        let mut first: PendingResult = Box::pin({
            let work = work.clone();
            async move { work.ask("a".into(), client(1), Duration::ZERO, make).await }
        });
        assert!(begin(&mut first).await.is_none());
        wait_until(|| began.load(Relaxed) == 1).await;
        drop(first);
        tokio::time::sleep(MOMENT).await;
        let mut second: PendingResult =
            Box::pin(async move { work.ask("a".into(), client(1), Duration::ZERO, again).await });
        assert!(begin(&mut second).await.is_none());
        may_end.store(true, Relaxed);
        assert_eq!(second.await, Ok("whole".into()));
    });
}

#[test]
fn work_that_panics_is_a_fault_and_the_next_is_done() {
    block_on(async {
        let work: Work<Bytes> = Work::new(1, 0);
        let panics = work.ask("a".into(), client(1), Duration::ZERO, |_: &Wanted| panic!("on purpose"));
        assert_eq!(panics.await, Err(NoResult::Fault));
        let next = work.ask("a".into(), client(1), Duration::ZERO, |_: &Wanted| Bytes::from("b"));
        assert_eq!(next.await, Ok("b".into()));
    });
}
