"""Who answers "what stands at this place, given what is shown?"."""
