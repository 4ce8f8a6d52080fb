import{a as o,b as r}from"./chunk-Y46GMLJO.js";import"./chunk-S45M3N2T.js";export{r as ColourCard,o as ColourChoice};
