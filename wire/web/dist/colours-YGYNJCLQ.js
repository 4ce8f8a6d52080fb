import{a as o,b as r}from"./chunk-RVLZ7YJ7.js";import"./chunk-UXYZ5QGE.js";export{r as ColourCard,o as ColourChoice};
