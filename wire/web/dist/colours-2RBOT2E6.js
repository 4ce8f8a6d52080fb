import{a as o,b as r}from"./chunk-JGRVD5AE.js";import"./chunk-UY5OSXFY.js";export{r as ColourCard,o as ColourChoice};
