// The parts of ECharts that the page uses; the bundler leaves the rest out.
import { BarChart, CustomChart, LineChart } from 'echarts/charts';
import {
  AriaComponent, GridComponent, LegendPlainComponent, MarkAreaComponent, MarkLineComponent, MarkPointComponent,
  TitleComponent, TooltipComponent,
} from 'echarts/components';
import * as echarts from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';

echarts.use([
  AriaComponent, BarChart, CustomChart, GridComponent, LegendPlainComponent, LineChart, MarkAreaComponent,
  MarkLineComponent, MarkPointComponent, SVGRenderer, TitleComponent, TooltipComponent,
]);

export const createChart = (frame, size) => echarts.init(frame, null, { renderer: 'svg', ...size });
