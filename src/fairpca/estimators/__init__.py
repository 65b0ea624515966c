"""Estimators in the manner of scikit-learn, and how rows become what they are fitted to."""
