# UNTRIED: written where no container could be built. A server of the embedded model on the CPU:
#
#     docker build -t besag . && docker run -p 8000:8000 -v $PWD/keys:/keys:ro besag --keys /keys
#
FROM python:3.12-slim
RUN useradd --create-home besag
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
COPY examples examples
COPY recipes recipes
RUN pip install --no-cache-dir torch --index-url https://download.pytorch.org/whl/cpu \
    && pip install --no-cache-dir '.[serve]'
USER besag
WORKDIR /home/besag
EXPOSE 8000
STOPSIGNAL SIGTERM
ENTRYPOINT ["besag", "serve", "--host", "0.0.0.0", "--port", "8000"]
