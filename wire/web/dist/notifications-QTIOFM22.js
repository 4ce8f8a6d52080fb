import{a as o,b as r}from"./chunk-OVFECYMZ.js";import"./chunk-YJXTFUDH.js";import"./chunk-ZW2AGZUB.js";import"./chunk-H2RS4LGK.js";export{r as NotificationFields,o as Notifications};
