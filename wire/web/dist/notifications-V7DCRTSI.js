import{a as o,b as r}from"./chunk-SNMVIXG6.js";import"./chunk-QDAYF5J5.js";import"./chunk-WVZKNENU.js";export{r as NotificationFields,o as Notifications};
