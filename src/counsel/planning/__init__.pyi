from counsel.planning.criticality import Criticality as Criticality
from counsel.planning.evaluate import Evaluation as Evaluation
from counsel.planning.explain import Explanation as Explanation
from counsel.planning.frontier import Vertex as Vertex
