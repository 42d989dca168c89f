//! What the spin-wait laboratory finds.

mod attach;

pub use attach::{
    SPIN_ATTACH_SCHEMA, SpinAttachRecord, SpinCaller, SpinMatch, SpinPlace, SpinShares, SpinThread,
};

mod advice;
mod pause;
mod predict;

pub use advice::{AdviceRecord, SPIN_ADVICE_SCHEMA, SpinAdviceRecord};
pub use pause::{
    ChipRecord, CpuPauseRecord, HintCostRecord, LevelRecord, PauseCheckRecord, SPIN_PAUSE_SCHEMA,
    SpinPauseRecord, TooLongRecord,
};
pub use predict::{
    CliffsRecord, MoveRecord, PredictionRecord, ProcessorRecord, SPIN_PREDICT_SCHEMA,
    SpinPredictRecord, TunableRecord,
};
mod replay;

pub use replay::{
    ContentionCell, ReplayCell, ReplayHint, ReplayMeasured, ReplayPrediction, ReplayedAlgorithm,
    SPIN_REPLAY_SCHEMA, SpinReplayRecord,
};
